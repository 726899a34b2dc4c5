"""Queues over HTTP: list, create, inspect, pause, purge and delete them, and send messages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.paging import name_page_of, name_query, page_answer, page_of, page_query
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import Route, caller_of, json_answer, no_content, read_shape
from atoll.bindings.queue.bounds import MAX_DELAY
from atoll.bindings.queue.consumer import QueueTriggers
from atoll.bindings.queue.limits import (
    MAX_BATCH,
    MAX_BATCH_BYTES,
    MAX_MESSAGE,
    checked_queue_name,
    refuse_one_more,
)
from atoll.bindings.queue.pulling import Pulling, PullSettings, pulled_dead_letters
from atoll.bindings.queue.redelivery import Moved, WantedMove, move, target_of
from atoll.bindings.queue.store import RETENTION, NewMessage, Queue, QueueStore, Waiting
from atoll.clock import iso_time
from atoll.errors import InvalidArgument

MAX_PEEK = 100
PEEKED = 8  # messages that are read at once


class NewQueue(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    retention_seconds: int = RETENTION


class QueueAnswer(msgspec.Struct):
    name: str
    consumer: str | None  # the worker that consumes its messages
    paused: bool
    waiting: int  # messages that are due
    delayed: int  # messages that are not due yet
    leased: int  # messages that a consumer has
    bytes: int  # of all messages: each counts for 128 bytes more than its body
    oldest_at: str | None
    dropped: int  # messages that failed too often and had no dead-letter queue
    retention_seconds: int
    created_at: str
    pulls: bool  # a consumer pulls its messages over HTTP
    dead_letter_queue: str | None  # where its consumer's messages go after the last retry


class QueuesAnswer(msgspec.Struct, omit_defaults=True):
    queues: list[QueueAnswer]
    cursor: str = ""


class PostedMessage(msgspec.Struct, forbid_unknown_fields=True):
    """A message to send. `body` is any JSON; for `text` it is a string, for `bytes` base64."""

    body: msgspec.Raw
    content_type: str = "json"
    delay_seconds: int = 0


class PostedMessages(msgspec.Struct, forbid_unknown_fields=True):
    messages: list[PostedMessage]


class Posted(msgspec.Struct):
    ids: list[str]


class Purged(msgspec.Struct):
    purged: int


class ChangedQueue(msgspec.Struct, forbid_unknown_fields=True):
    retention_seconds: int


class MessageAnswer(msgspec.Struct):
    """A stored message. `body` is as in PostedMessage; for the type v8 it is base64."""

    id: str
    content_type: str
    body: Any
    sent_at: str
    attempts: int
    due_at: str
    leased: bool  # a consumer has it


class MessagesAnswer(msgspec.Struct, omit_defaults=True):
    messages: list[MessageAnswer]
    cursor: str = ""


class QueuesApi:
    def __init__(self, store: QueueStore, triggers: QueueTriggers, audit: AuditLog) -> None:
        self._store = store
        self._triggers = triggers
        self._audit = audit
        self._pulling = Pulling(store, triggers)

    def routes(self) -> list[Route]:
        one = "/api/queues/{queue}"
        read, deploy = Scope.READ, Scope.DEPLOY
        return [
            Route(
                "GET", "/api/queues", self.list, read, "Queues by name, with their backlog", gives=QueuesAnswer,
                query=name_query(),
            ),
            Route(
                "POST", "/api/queues", self.create, deploy, "Create a queue", takes=NewQueue, gives=QueueAnswer,
                status=201,
            ),
            Route("GET", one, self.show, read, "One queue", gives=QueueAnswer),
            Route("PATCH", one, self.change, deploy, "Change a queue", takes=ChangedQueue, gives=QueueAnswer),
            Route("DELETE", one, self.delete, deploy, "Delete a queue and its messages", status=204),
            Route(
                "GET", f"{one}/messages", self.peek, read, "Messages of a queue; reading does not change them",
                gives=MessagesAnswer, query=page_query(MAX_PEEK),
            ),
            Route(
                "POST", f"{one}/messages", self.send, deploy, "Send messages", takes=PostedMessages, gives=Posted,
                status=201,
            ),
            Route(
                "PUT", f"{one}/pull", self.allow_pull, deploy, "Let a consumer pull messages over HTTP",
                takes=PullSettings, gives=QueueAnswer,
            ),
            Route("DELETE", f"{one}/pull", self.forbid_pull, deploy, "Let no consumer pull", gives=QueueAnswer),
            Route("POST", f"{one}/pause", self.pause, deploy, "Pause delivery", gives=QueueAnswer),
            Route("POST", f"{one}/resume", self.resume, deploy, "Resume delivery", gives=QueueAnswer),
            Route("POST", f"{one}/move", self.move, deploy, "Move messages to another queue", WantedMove, Moved),
            Route("POST", f"{one}/purge", self.purge, deploy, "Delete all messages that no consumer has", gives=Purged),
        ]  # fmt: skip

    async def list(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("queues", self._listed(caller_of(request).tenant, after), limit)

    async def _listed(self, tenant: str, after: str) -> AsyncIterator[tuple[str, QueueAnswer]]:
        for queue in await self._store.all(tenant):
            if queue.name > after:
                yield queue.name, await self._shown(queue)

    async def create(self, request: Request) -> Response:
        wanted = await read_shape(request, NewQueue)
        tenant = caller_of(request).tenant
        try:
            name = checked_queue_name(wanted.name)
        except InvalidArgument as error:
            raise Refused(ApiCode.BAD_NAME, str(error)) from None
        retention = checked_retention(wanted.retention_seconds)
        if await self._store.find(tenant, name) is not None:
            raise Refused(ApiCode.NAME_TAKEN, f"a queue named `{name}` already exists")
        await refuse_one_more(self._store, tenant)
        await self._audit.note(caller_of(request), "queue.create", name)
        queue = await self._store.ensure(tenant, name, retention)
        return json_answer(await self._shown(queue), status=201)

    async def show(self, request: Request) -> Response:
        return json_answer(await self._shown(await self._found(request)))

    async def change(self, request: Request) -> Response:
        queue = await self._found(request)
        retention = checked_retention((await read_shape(request, ChangedQueue)).retention_seconds)
        await self._audit.note(caller_of(request), "queue.change", queue.name, f"retention {retention} s")
        await self._store.retain(queue.id, retention)
        return json_answer(await self._shown(queue._replace(retention=retention)))

    async def delete(self, request: Request) -> Response:
        queue = await self._found(request)
        consumer = self._triggers.consumer_of(queue.tenant, queue.name)
        if consumer is not None:
            raise Refused(
                ApiCode.TRIGGER_TAKEN,
                f"the worker `{consumer}` consumes the queue",
                "deploy the worker without this consumer, then delete the queue",
            )
        await self._audit.note(caller_of(request), "queue.delete", queue.name)
        await self._store.delete(queue.id)
        return no_content()

    async def peek(self, request: Request) -> Response:
        queue = await self._found(request)
        after, limit = page_of(request, MAX_PEEK)
        return await page_answer("messages", self._peeked(queue, after), limit)

    async def _peeked(self, queue: Queue, after: int) -> AsyncIterator[tuple[str, MessageAnswer]]:
        """A page of few messages: each has up to 128 KB."""
        while found := await self._store.peek(queue.id, after, PEEKED):
            for message in found:
                after = message.seq
                yield str(after), _shown_message(message)

    async def send(self, request: Request) -> Response:
        queue = await self._found(request)
        posted = await read_shape(request, PostedMessages, limit=4 * MAX_BATCH_BYTES)
        if not 1 <= len(posted.messages) <= MAX_BATCH:
            raise bad_body(f"`messages` has {len(posted.messages)} entries, but must have from 1 to {MAX_BATCH}")
        messages = [message_of(message) for message in posted.messages]
        size = sum(len(message.body) for message in messages)
        if len(messages) > 1 and size > MAX_BATCH_BYTES:
            raise bad_body(f"batch size of {size} bytes exceeds limit of {MAX_BATCH_BYTES}", "send them in parts")
        await self._audit.note(caller_of(request), "queue.send", queue.name, f"{len(messages)} messages")
        return json_answer(Posted(await self._store.send(queue.id, messages)), status=201)

    async def pause(self, request: Request) -> Response:
        return await self._set_paused(request, True)

    async def resume(self, request: Request) -> Response:
        return await self._set_paused(request, False)

    async def allow_pull(self, request: Request) -> Response:
        queue, settings = await self._found(request), await read_shape(request, PullSettings)
        await self._audit.note(caller_of(request), "queue.pull", queue.name)
        await self._pulling.allow(queue, settings)
        return await self.show(request)

    async def forbid_pull(self, request: Request) -> Response:
        queue = await self._found(request)
        await self._audit.note(caller_of(request), "queue.pull", queue.name, "off")
        await self._pulling.forbid(queue)
        return await self.show(request)

    async def purge(self, request: Request) -> Response:
        queue = await self._found(request)
        await self._audit.note(caller_of(request), "queue.purge", queue.name)
        return json_answer(Purged(await self._store.purge(queue.id)))

    async def move(self, request: Request) -> Response:
        queue = await self._found(request)
        target = await target_of(self._store, queue, (await read_shape(request, WantedMove)).to)
        await self._audit.note(caller_of(request), "queue.move", queue.name, f"to {target.name}")
        return json_answer(Moved(await move(self._store, queue, target)))

    async def _set_paused(self, request: Request, paused: bool) -> Response:
        queue = await self._found(request)
        await self._audit.note(caller_of(request), "queue.pause" if paused else "queue.resume", queue.name)
        await self._store.pause(queue.id, paused)
        return json_answer(await self._shown(queue._replace(paused=paused)))

    async def _found(self, request: Request) -> Queue:
        name = request.path_params["queue"]
        queue = await self._store.find(caller_of(request).tenant, name)
        if queue is None:
            raise Refused(ApiCode.NOT_FOUND, f"there is no queue `{name[:80]}`", "GET /api/queues lists the queues")
        return queue

    async def _shown(self, queue: Queue) -> QueueAnswer:
        depth = await self._store.depth(queue.id)
        return QueueAnswer(
            name=queue.name,
            consumer=self._triggers.consumer_of(queue.tenant, queue.name),
            paused=queue.paused,
            waiting=depth.waiting,
            delayed=depth.delayed,
            leased=depth.leased,
            bytes=depth.bytes,
            oldest_at=None if depth.oldest_at is None else iso_time(depth.oldest_at),
            dropped=queue.dropped,
            retention_seconds=queue.retention,
            created_at=iso_time(queue.created_at),
            pulls=bool(queue.pull),
            dead_letter_queue=self._triggers.dead_letters_of(queue.tenant, queue.name) or pulled_dead_letters(queue),
        )


def checked_retention(seconds: int) -> int:
    if not 60 <= seconds <= 14 * 86_400:
        raise bad_body("`retention_seconds` must be from 60 to 1209600 (14 days)")
    return seconds


def _shown_message(message: Waiting) -> MessageAnswer:
    body: Any = message.body.decode("utf-8", "replace")  # an engine may have declared bytes as text that are not UTF-8
    if message.type == "json":
        try:
            body = msgspec.json.decode(message.body, type=msgspec.Raw)
        except (msgspec.DecodeError, RecursionError):
            pass
    elif message.type != "text":
        body = base64.b64encode(message.body).decode()
    return MessageAnswer(
        id=message.id,
        content_type=message.type,
        body=body,
        sent_at=iso_time(message.sent_at),
        attempts=message.attempts,
        due_at=iso_time(message.visible_at),
        leased=bool(message.leased),
    )


def message_of(posted: PostedMessage) -> NewMessage:
    body = msgspec.json.format(bytes(posted.body), indent=-1)  # without whitespace, and without decoding it
    if posted.content_type in ("text", "bytes") and body.startswith(b'"'):
        try:
            text = msgspec.json.decode(body, type=str)
            body = text.encode() if posted.content_type == "text" else base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise bad_body("a message of the type bytes is not base64") from None
    elif posted.content_type == "json":
        try:
            body.decode()
        except UnicodeDecodeError:
            raise bad_body("a message is not UTF-8") from None
    else:
        raise bad_body("a message has `content_type` json, or text or bytes with a string as `body`")
    if len(body) > MAX_MESSAGE:
        raise bad_body(f"message length of {len(body)} bytes exceeds limit of {MAX_MESSAGE}")
    if not 0 <= posted.delay_seconds <= MAX_DELAY:
        raise bad_body(f"`delay_seconds` must be from 0 to {MAX_DELAY}")
    return NewMessage(posted.content_type, body, posted.delay_seconds)
