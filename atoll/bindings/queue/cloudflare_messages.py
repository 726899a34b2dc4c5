"""Messages of queues below /client/v4: push, pull, acknowledge. For programs that are no workers."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.cloudflare import ACCOUNT, CloudflareRefusal, envelope, read_v4
from atoll.api.refusals import bad_body
from atoll.api.routes import Route, caller_of
from atoll.bindings.queue.admin import PostedMessage, message_of
from atoll.bindings.queue.limits import MAX_BATCH, MAX_BATCH_BYTES
from atoll.bindings.queue.pulling import Pulling, WantedAck, WantedPull, lease_id
from atoll.bindings.queue.store import Message, NewMessage, Queue, QueueStore

NO_QUEUE = 11000


class PushedMessage(Struct):
    body: msgspec.Raw
    content_type: str = "json"
    delay_seconds: int | None = None


class PushedBatch(Struct):
    messages: list[PushedMessage]
    delay_seconds: int | None = None


async def found_queue(store: QueueStore, request: Request) -> Queue:
    name = request.path_params["queue"]
    queue = await store.find(caller_of(request).tenant, name)
    if queue is None:
        raise CloudflareRefusal(404, NO_QUEUE, f"there is no queue `{name[:80]}`")
    return queue


class CloudflareMessages:
    def __init__(self, store: QueueStore, pulling: Pulling, audit: AuditLog) -> None:
        self._store = store
        self._pulling = pulling
        self._audit = audit

    def routes(self) -> list[Route]:
        change, messages = Scope.DEPLOY, f"{ACCOUNT}/queues/{{queue}}/messages"
        return [
            Route("POST", messages, self.push, change, "Send a message"),
            Route("POST", f"{messages}/batch", self.push_many, change, "Send messages"),
            Route("POST", f"{messages}/pull", self.pull, change, "Take messages for a time"),
            Route(
                "POST", f"{messages}/ack", self.settle, change, "Delete taken messages, or have them delivered again"
            ),
        ]

    async def push(self, request: Request) -> Response:
        queue = await found_queue(self._store, request)
        return await self._send(request, queue, [await read_v4(request, PushedMessage)])

    async def push_many(self, request: Request) -> Response:
        queue = await found_queue(self._store, request)
        batch = await read_v4(request, PushedBatch, limit=4 * MAX_BATCH_BYTES)
        if not 1 <= len(batch.messages) <= MAX_BATCH:
            raise bad_body(f"`messages` has {len(batch.messages)} entries, but must have from 1 to {MAX_BATCH}")
        for message in batch.messages:
            if message.delay_seconds is None:
                message.delay_seconds = batch.delay_seconds
        return await self._send(request, queue, batch.messages)

    async def _send(self, request: Request, queue: Queue, pushed: list[PushedMessage]) -> Response:
        messages = [_new(each) for each in pushed]
        size = sum(len(message.body) for message in messages)
        if len(messages) > 1 and size > MAX_BATCH_BYTES:
            raise bad_body(f"batch size of {size} bytes exceeds limit of {MAX_BATCH_BYTES}", "send them in parts")
        await self._audit.note(caller_of(request), "queue.send", queue.name, f"{len(messages)} messages")
        await self._store.send(queue.id, messages)
        depth = await self._store.depth(queue.id)
        backlog = {"backlog_count": depth.waiting + depth.delayed + depth.leased, "backlog_bytes": depth.bytes}
        return envelope({"metadata": {"metrics": backlog}})

    async def pull(self, request: Request) -> Response:
        queue = await found_queue(self._store, request)
        wanted = await read_v4(request, WantedPull, empty=WantedPull())
        taken = await self._pulling.pull(queue, wanted)
        depth = await self._store.depth(queue.id)
        left = depth.waiting + depth.delayed + depth.leased
        found = {"message_backlog_count": left, "messages": [_shown(each) for each in taken]}
        return envelope(found | {"metadata": {"metrics": {"backlog_count": left, "backlog_bytes": depth.bytes}}})

    async def settle(self, request: Request) -> Response:
        queue = await found_queue(self._store, request)
        settled = await self._pulling.settle(queue, await read_v4(request, WantedAck))
        return envelope({"ackCount": settled.acks, "retryCount": settled.retries, "warnings": settled.warnings})


def _new(pushed: PushedMessage) -> NewMessage:
    made = message_of(PostedMessage(pushed.body, pushed.content_type, pushed.delay_seconds or 0))
    return made._replace(delay=pushed.delay_seconds)


def _shown(message: Message) -> dict[str, Any]:
    """As Cloudflare shows it: a text as it is, and every other type in base64."""
    is_text = message.type == "text"
    body = message.body.decode("utf-8", "replace") if is_text else base64.b64encode(message.body).decode()
    return {
        "id": message.id,
        "body": body,
        "timestamp_ms": message.sent_at,
        "attempts": message.attempts,
        "lease_id": lease_id(message),
        "metadata": {"CF-Content-Type": message.type, "CF-sourceMessageSource": "atoll"},
    }
