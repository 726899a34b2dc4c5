"""`wrangler tail`: live records of a worker over a WebSocket, as TraceItems in JSON (the protocol trace-v1).

POST makes a tail, whose answer has the URL of its WebSocket. The URL holds a secret and works once; wrangler sends no
token with it. The records come from the same listeners as those of `atoll tail`, and the same limits hold.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from atoll.api.callers import Caller, Scope
from atoll.api.cloudflare import V4, CloudflareRefusal, envelope, read_v4
from atoll.api.refusals import ApiCode, Refused
from atoll.api.routes import Route, caller_of
from atoll.clock import iso_time
from atoll.config import Settings
from atoll.control.cloudflare.scripts import SCRIPT
from atoll.control.cloudflare.tail_filters import TailFilter, WantedTail, filters_of, picks, traced
from atoll.control.deploy.deployer import Deployer
from atoll.control.endpoints.logs import LogsApi, groups, rest_seconds
from atoll.logs import Invocation, Said
from atoll.observe.live import Listener
from atoll.observe.records import LogEntry, entry_of, row_of
from atoll.observe.store import LogStore
from atoll.public_address import is_secure

NO_TAIL = 10057
PROTOCOL = "trace-v1"
NORMAL = 1000
SILENCE_SECONDS = 15.0
UNUSED_SECONDS = 60  # until a tail without a WebSocket is forgotten
TAIL_SECONDS = 6 * 3600
MAX_FILTERS_BYTES = 16 << 10


class Tail(Struct, eq=False):
    id: str
    secret: str
    worker: str  # its id
    caller: Caller
    filters: Sequence[TailFilter]
    made_at: float
    listener: Listener | None = None  # once its WebSocket is open

    @property
    def is_stale(self) -> bool:
        return self.listener is None and time.time() - self.made_at > UNUSED_SECONDS

    @property
    def ends_at(self) -> float:
        return self.made_at + TAIL_SECONDS


class TailsOfScripts:
    def __init__(self, deployer: Deployer, logs: LogsApi, store: LogStore, settings: Settings) -> None:
        self._deployer = deployer
        self._logs = logs
        self._store = store
        self._settings = settings
        self._tails: dict[str, Tail] = {}  # by id

    def routes(self) -> list[Route]:
        many, one = f"{SCRIPT}/tails", f"{SCRIPT}/tails/{{tail}}"
        return [
            Route("GET", many, self.list, Scope.LOGS, "The live tails of a worker"),
            Route("POST", many, self.make, Scope.LOGS, "Make a tail; its WebSocket sends live records"),
            Route("DELETE", one, self.delete, Scope.LOGS, "End a tail"),
        ]

    def _of(self, request: Request) -> tuple[str, list[Tail]]:
        """The id of the worker of a request, and its tails."""
        worker = self._deployer.find(request.path_params["script"], caller_of(request)).id
        for stale in [tail for tail in self._tails.values() if tail.is_stale]:
            del self._tails[stale.id]
        return worker, [tail for tail in self._tails.values() if tail.worker == worker]

    async def list(self, request: Request) -> Response:
        return envelope([_shown(tail) for tail in self._of(request)[1]])

    async def make(self, request: Request) -> Response:
        caller, (worker, _) = caller_of(request), self._of(request)
        wanted = await read_v4(request, WantedTail, limit=MAX_FILTERS_BYTES, empty=WantedTail())
        filters = filters_of(wanted, (request.client.host if request.client is not None else ""))
        waiting = [t for t in self._tails.values() if t.listener is None and t.caller.tenant == caller.tenant]
        self._logs.refuse_one_more(caller.tenant, len(waiting))
        tail = Tail(secrets.token_hex(16), secrets.token_urlsafe(32), worker, caller, filters, time.time())
        self._tails[tail.id] = tail
        return envelope(_shown(tail) | {"url": f"{self._at(request)}{V4}/tails/{tail.secret}"})

    def _at(self, request: Request) -> str:
        host = request.headers["host"]
        secure = is_secure(self._settings, host) or request.headers.get("x-forwarded-proto") == "https"
        return f"{'wss' if secure else 'ws'}://{host}"

    async def delete(self, request: Request) -> Response:
        wanted = request.path_params["tail"]
        for tail in self._of(request)[1]:
            if tail.id == wanted:
                self._forget(tail)
                return envelope(None)
        raise CloudflareRefusal(404, NO_TAIL, f"there is no tail {wanted[:80]!r} of this worker")

    def _forget(self, tail: Tail) -> None:
        self._tails.pop(tail.id, None)
        if tail.listener is not None:
            tail.listener.close()

    # The WebSocket

    async def listen(self, socket: WebSocket) -> None:
        given = socket.path_params["secret"].encode()
        for tail in [*self._tails.values()]:
            if secrets.compare_digest(tail.secret.encode(), given) and not tail.is_stale and tail.listener is None:
                break
        else:
            raise Refused(ApiCode.NOT_FOUND, "there is no such tail, or it has been opened before", "make another one")
        self._logs.refuse_one_more(tail.caller.tenant)
        offered = socket.scope["subprotocols"]
        tail.listener = self._store.listen(tail.worker)
        self._logs.streams[tail.caller.tenant] += 1
        watch = asyncio.ensure_future(_close_with_client(socket, tail.listener))
        try:
            await socket.accept(PROTOCOL if PROTOCOL in offered else None)
            await self._send_all(socket, tail, tail.listener)
            await socket.close(NORMAL)  # wrangler ends with it; another code would make it connect again
        except (WebSocketDisconnect, RuntimeError, OSError):
            if not watch.done():
                raise
        finally:
            self._logs.streams[tail.caller.tenant] -= 1
            watch.cancel()
            self._store.unlisten(tail.worker, tail.listener)
            self._forget(tail)

    async def _send_all(self, socket: WebSocket, tail: Tail, listener: Listener) -> None:
        tenant, was_dropping = tail.caller.tenant, False
        while (came := await listener.next(SILENCE_SECONDS)) is not None:
            records, dropped = came
            if not tail.caller.may_still() or time.time() > tail.ends_at:
                return
            if dropped and not was_dropping:
                await socket.send_text(_notice("overload", f"{dropped} records came faster than a tail may receive"))
            elif was_dropping and not dropped:
                await socket.send_text(_notice("overload-stop", "all records are sent again"))
            was_dropping = bool(dropped)
            for group in groups(records):
                weight = sum(each.weight() for each in group if isinstance(each, Invocation))
                found = await self._logs.work(weight, _chosen, group, tail.filters)
                await self._logs.maps.map_entries([entry for _, entry in found], tenant)
                for text in await self._logs.work(weight, _encoded, found):
                    await socket.send_text(text)
            streams = self._logs.streams
            await asyncio.sleep(rest_seconds(streams[tenant], streams.total()))


async def _close_with_client(socket: WebSocket, listener: Listener) -> None:
    """Notice a client that has gone at once, not with the next record."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
    listener.close()


def _chosen(
    records: Sequence[Invocation | Said], filters: Sequence[TailFilter]
) -> list[tuple[dict[str, Any], LogEntry]]:
    """The records that pass all filters, as items and as entries, which source maps are applied to."""
    found = [(traced(each), entry_of(row_of(each))) for each in records if isinstance(each, Invocation)]
    return [(item, entry) for item, entry in found if all(picks(each, item, entry) for each in filters)]


def _encoded(found: Sequence[tuple[dict[str, Any], LogEntry]]) -> list[str]:
    for item, entry in found:
        if entry.exception is not None and entry.exception.stack:
            item["exceptions"][0]["stack"] = entry.exception.stack
    return [msgspec.json.encode(item).decode() for item, _ in found]


def _notice(kind: str, message: str) -> str:
    """A message about the tail itself."""
    item: dict[str, Any] = {
        "outcome": "ok", "scriptName": None, "exceptions": [], "logs": [], "eventTimestamp": int(time.time() * 1000),
        "event": {"type": kind, "message": message},
    }  # fmt: skip
    return msgspec.json.encode(item).decode()


def _shown(tail: Tail) -> dict[str, Any]:
    return {"id": tail.id, "expires_at": iso_time(int(tail.ends_at * 1000))}
