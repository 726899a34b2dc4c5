"""Queues below /client/v4: queues, their consumers, messages. A consumer belongs to the version of its worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.cloudflare import ACCOUNT, CloudflareRefusal, CloudflareTools, envelope, page_info, read_v4
from atoll.api.refusals import Refused, bad_body
from atoll.api.routes import Route, caller_of
from atoll.bindings.queue.admin import checked_retention
from atoll.bindings.queue.bounds import MAX_DELAY
from atoll.bindings.queue.cloudflare_messages import CloudflareMessages, found_queue
from atoll.bindings.queue.entries import QueueConsumer
from atoll.bindings.queue.limits import checked_queue_name, refuse_one_more
from atoll.bindings.queue.ops import QueueBinding
from atoll.bindings.queue.pulling import Pulling, PullSettings, settings_of
from atoll.bindings.queue.store import RETENTION, Queue
from atoll.clock import iso_time
from atoll.errors import InvalidArgument

TAKEN, NO_CONSUMER = 11009, 11001
FIELD = "queue_consumers"


class QueueSettings(Struct):
    delivery_delay: int | None = None
    delivery_paused: bool | None = None
    message_retention_period: int | None = None


class WantedQueue(Struct):
    queue_name: str = ""
    settings: QueueSettings | None = None


class ConsumerSettings(Struct):
    batch_size: int | None = None
    max_retries: int | None = None
    max_wait_time_ms: int | None = None
    max_concurrency: int | None = None
    retry_delay: int | None = None
    visibility_timeout_ms: int | None = None


class WantedConsumer(Struct):
    type: str = "worker"
    script_name: str = ""
    script: str = ""
    dead_letter_queue: str | None = None
    settings: ConsumerSettings | None = None


class CloudflareQueues:
    def __init__(self, binding: QueueBinding, tools: CloudflareTools) -> None:
        self._store = binding.store
        self._triggers = binding.trigger
        self._pulling = Pulling(binding.store, binding.trigger)
        self._tools = tools

    def routes(self) -> list[Route]:
        read, change = Scope.READ, Scope.DEPLOY
        many, one = f"{ACCOUNT}/queues", f"{ACCOUNT}/queues/{{queue}}"
        consumers, consumer = f"{one}/consumers", f"{one}/consumers/{{consumer}}"
        return [
            Route("GET", many, self.list, read, "The queues of an account"),
            Route("POST", many, self.create, change, "Create a queue"),
            Route("GET", one, self.show, read, "One queue"),
            Route("PATCH", one, self.change, change, "Change a queue"),
            Route("PUT", one, self.change, change, "Change a queue"),
            Route("DELETE", one, self.delete, change, "Delete a queue and its messages"),
            Route(
                "GET", f"{one}/purge", self.purged, read, "Whether a purge is under way: never, a purge is immediate"
            ),
            Route("POST", f"{one}/purge", self.purge, change, "Delete all messages that no consumer has"),
            *CloudflareMessages(self._store, self._pulling, self._tools.audit).routes(),
            Route("GET", consumers, self.consumers, read, "The consumer of a queue"),
            Route("GET", consumer, self.consumer, read, "The consumer of a queue"),
            Route("POST", consumers, self.add, change, "Let a worker consume a queue"),
            Route("PUT", consumer, self.add, change, "Change how a worker consumes a queue"),
            Route("DELETE", consumer, self.remove, change, "Let a worker consume a queue no more"),
        ]

    async def _find(self, request: Request) -> Queue:
        return await found_queue(self._store, request)

    async def list(self, request: Request) -> Response:
        tenant, names = caller_of(request).tenant, request.query_params.getlist("name")
        found = [queue for queue in await self._store.all(tenant) if not names or queue.name in names]
        page, size = page_info(request, 100, 100)
        shown = [self._shown(queue) for queue in found[(page - 1) * size : page * size]]
        info = {"page": page, "per_page": size, "count": len(shown), "total_count": len(found)}
        return envelope(shown, info=info | {"total_pages": -(-len(found) // size)})

    async def create(self, request: Request) -> Response:
        wanted, caller = await read_v4(request, WantedQueue), caller_of(request)
        try:
            name = checked_queue_name(wanted.queue_name)
        except InvalidArgument as error:
            raise CloudflareRefusal(400, 11003, str(error)) from None
        settings = wanted.settings or QueueSettings()
        retention = checked_retention(settings.message_retention_period or RETENTION)
        if await self._store.find(caller.tenant, name) is not None:
            raise CloudflareRefusal(409, TAKEN, f"a queue named `{name}` already exists")
        await refuse_one_more(self._store, caller.tenant)
        await self._tools.audit.note(caller, "queue.create", name)
        queue = await self._store.ensure(caller.tenant, name, retention)
        return envelope(self._shown(await self._set(queue, settings)))

    async def show(self, request: Request) -> Response:
        return envelope(self._shown(await self._find(request)))

    async def change(self, request: Request) -> Response:
        queue, wanted = await self._find(request), await read_v4(request, WantedQueue)
        if wanted.queue_name and wanted.queue_name != queue.name:
            raise CloudflareRefusal(400, 11003, "a queue cannot be renamed here: its name is its id")
        settings = wanted.settings or QueueSettings()
        if settings.message_retention_period is not None:
            retention = checked_retention(settings.message_retention_period)
            await self._tools.audit.note(caller_of(request), "queue.change", queue.name, f"retention {retention} s")
            await self._store.retain(queue.id, retention)
            queue = queue._replace(retention=retention)
        if settings.delivery_paused is not None:
            paused = settings.delivery_paused
            await self._tools.audit.note(caller_of(request), "queue.pause" if paused else "queue.resume", queue.name)
        return envelope(self._shown(await self._set(queue, settings)))

    async def _set(self, queue: Queue, settings: QueueSettings) -> Queue:
        """Set whether a queue is paused, and the delay of its messages."""
        delay = settings.delivery_delay
        if delay is not None:
            if not 0 <= delay <= MAX_DELAY:
                raise CloudflareRefusal(400, 100127, f"`delivery_delay` is {delay}, but must be from 0 to {MAX_DELAY}")
            await self._store.set_delay(queue.id, delay)
        if settings.delivery_paused is not None:
            await self._store.pause(queue.id, settings.delivery_paused)
        return await self._store.find(queue.tenant, queue.name) or queue

    async def delete(self, request: Request) -> Response:
        queue = await self._find(request)
        consumer = self._triggers.consumer_of(queue.tenant, queue.name)
        if consumer is not None:
            text = f"the worker `{consumer}` consumes the queue"
            raise CloudflareRefusal(409, 11005, text, f"wrangler queues consumer remove {queue.name} {consumer}")
        await self._tools.audit.note(caller_of(request), "queue.delete", queue.name)
        await self._store.delete(queue.id)
        return envelope(None)

    async def purge(self, request: Request) -> Response:
        queue = await self._find(request)
        await self._tools.audit.note(caller_of(request), "queue.purge", queue.name)
        await self._store.purge(queue.id)
        return envelope(self._shown(queue))

    async def purged(self, request: Request) -> Response:
        await self._find(request)
        return envelope({"completed": True, "started_at": ""})

    # Consumers

    async def consumers(self, request: Request) -> Response:
        return envelope(self._consumers(await self._find(request)))

    async def add(self, request: Request) -> Response:
        queue, wanted = await self._find(request), await read_v4(request, WantedConsumer)
        if wanted.type == "http_pull":
            return await self._allow_pull(request, queue, wanted)
        if wanted.type != "worker":
            text = f"`type` is {wanted.type[:80]!r}, but a consumer is a worker or http_pull"
            raise CloudflareRefusal(400, 100127, text)
        if queue.pull:
            raise CloudflareRefusal(409, 11004, f"a consumer pulls from the queue `{queue.name}` already")
        name = wanted.script_name or wanted.script or request.path_params.get("consumer", "")
        worker = self._worker(request, name)
        present = self._triggers.consumer_of(queue.tenant, queue.name)
        if present is not None and present != worker.name:
            raise CloudflareRefusal(409, 11004, f"the worker `{present}` consumes the queue already")
        entry = _entry(queue.name, wanted)

        def added(consumers: Sequence[QueueConsumer]) -> Sequence[QueueConsumer]:
            return [*(each for each in consumers if each.queue != queue.name), entry]

        await self._tools.change(caller_of(request), worker.name, {FIELD: added})
        [found] = self._consumers(queue)
        return envelope(found)

    async def _allow_pull(self, request: Request, queue: Queue, wanted: WantedConsumer) -> Response:
        given = msgspec.structs.asdict(wanted.settings or ConsumerSettings())
        known = {name: given[name] for name in PullSettings.__struct_fields__ if given.get(name) is not None}
        await self._tools.audit.note(caller_of(request), "queue.pull", queue.name)
        await self._pulling.allow(queue, PullSettings(**known, dead_letter_queue=wanted.dead_letter_queue or ""))
        [found] = self._consumers(await self._find(request))
        return envelope(found)

    async def consumer(self, request: Request) -> Response:
        queue, wanted = await self._find(request), request.path_params["consumer"]
        for found in self._consumers(queue):
            if found["consumer_id"] == wanted:
                return envelope(found)
        raise CloudflareRefusal(404, NO_CONSUMER, f"the queue `{queue.name}` has no consumer {wanted[:80]!r}")

    async def remove(self, request: Request) -> Response:
        queue = await self._find(request)
        if queue.pull and request.path_params["consumer"] == _pull_id(queue):
            await self._tools.audit.note(caller_of(request), "queue.pull", queue.name, "off")
            await self._pulling.forbid(queue)
            return envelope(None)
        worker = self._worker(request, request.path_params["consumer"])
        if not any(each.queue == queue.name for each in worker.version.triggers.get(FIELD, ())):
            raise CloudflareRefusal(404, NO_CONSUMER, f"`{worker.name}` does not consume the queue `{queue.name}`")

        def without(consumers: Sequence[QueueConsumer]) -> Sequence[QueueConsumer]:
            return [each for each in consumers if each.queue != queue.name]

        await self._tools.change(caller_of(request), worker.name, {FIELD: without})
        return envelope(None)

    def _worker(self, request: Request, name: str) -> Any:
        try:
            return self._tools.find(name, caller_of(request))
        except Refused:
            raise CloudflareRefusal(404, NO_CONSUMER, f"there is no worker `{name[:80]}` in this account") from None

    def _consumers(self, queue: Queue) -> Sequence[dict[str, Any]]:
        if queue.pull:
            return [_puller(queue)]
        for worker in self._tools.workers_of(queue.tenant):
            for each in worker.version.triggers.get(FIELD, ()):
                if each.queue == queue.name:
                    return [_consumer(worker.name, each)]
        return []

    def _shown(self, queue: Queue) -> dict[str, Any]:
        producers = [
            {"type": "worker", "script": worker.name, "service": worker.name, "environment": "production"}
            for worker in self._tools.workers_of(queue.tenant)
            if any(
                each.kind == "queue" and each.fields.get("queue") == queue.name
                for each in worker.version.grants.values()
            )
        ]
        consumers = self._consumers(queue)
        settings = {
            "delivery_delay": queue.delay,
            "delivery_paused": queue.paused,
            "message_retention_period": queue.retention,
        }
        return {
            "queue_id": queue.name,
            "queue_name": queue.name,
            "created_on": iso_time(queue.created_at),
            "modified_on": iso_time(queue.created_at),
            "producers": producers,
            "producers_total_count": len(producers),
            "consumers": consumers,
            "consumers_total_count": len(consumers),
            "settings": settings,
        }


def _entry(queue: str, wanted: WantedConsumer) -> QueueConsumer:
    settings = wanted.settings or ConsumerSettings()
    wait = settings.max_wait_time_ms
    given = {
        "max_batch_size": settings.batch_size,
        "max_batch_timeout": None if wait is None else wait / 1000,
        "max_retries": settings.max_retries,
        "max_concurrency": settings.max_concurrency,
        "retry_delay": settings.retry_delay,
        "dead_letter_queue": wanted.dead_letter_queue or None,
    }
    try:
        return msgspec.convert(
            {"queue": queue, **{name: value for name, value in given.items() if value is not None}}, QueueConsumer
        )
    except msgspec.ValidationError as error:
        raise bad_body(f"the consumer does not fit: {error}") from None


def _pull_id(queue: Queue) -> str:
    return f"pull-{queue.name}"


def _puller(queue: Queue) -> dict[str, Any]:
    settings = msgspec.structs.asdict(settings_of(queue))
    dead = settings.pop("dead_letter_queue")
    shown = {"consumer_id": _pull_id(queue), "type": "http_pull", "queue_name": queue.name, "settings": settings}
    shown["created_on"] = iso_time(queue.created_at)
    return shown | ({"dead_letter_queue": dead} if dead else {})


def _consumer(script: str, each: QueueConsumer) -> dict[str, Any]:
    settings = {
        "batch_size": each.max_batch_size,
        "max_retries": each.max_retries,
        "max_wait_time_ms": int(each.max_batch_timeout * 1000),
        "max_concurrency": each.max_concurrency,
        "retry_delay": each.retry_delay or 0,
    }
    names = {"consumer_id": script, "script": script, "script_name": script, "service": script}
    shown = {**names, "environment": "production", "type": "worker", "queue_name": each.queue, "settings": settings}
    return shown | ({"dead_letter_queue": each.dead_letter_queue} if each.dead_letter_queue else {})
