"""KV as ops: checks the arguments and calls the store. Large values and streams are transferred in pieces."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, TypeAlias

import msgspec

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.kv import limits
from atoll.bindings.kv.pieces import Budget, ValueDownload, ValueUpload
from atoll.bindings.kv.store import Bound, KVStore, Space, StoredValue, TooMuch
from atoll.clock import ClockWatch, seconds_up
from atoll.errors import BindingRefused, InvalidArgument, StorageFailed

log = logging.getLogger("atoll.bindings")

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
PIECE = 256 * 1024  # bytes of one piece of a value that is read
SWEEP_SECONDS = 60.0
# Expired entries are kept for a while: a clock that was wrong and is corrected in that time loses nothing.
SWEPT_AFTER = 3_600.0

Found: TypeAlias = "list[StoredValue | None]"
KvOp: TypeAlias = Callable[["KV", OpCall], Coroutine[Any, Any, Reply]]


def named(verb: str) -> Callable[[KvOp], KvOp]:
    """Raise errors with Cloudflare's texts: `KV GET failed: 404 …`."""

    def wrap(method: KvOp) -> KvOp:
        @wraps(method)
        async def run(self: KV, call: OpCall) -> Reply:
            try:
                return await method(self, call)
            except BindingRefused as error:
                raise BindingRefused(f"KV {verb} failed: {error}") from None
            except StorageFailed as error:
                raise StorageFailed(f"KV {verb} failed: 507 {error}") from None

        return run

    return wrap


class KVEntry(msgspec.Struct, forbid_unknown_fields=True):
    namespace: str


class KV(Binding):
    kind = "kv"
    Entry = KVEntry

    def __init__(self, store: KVStore, *, clock: Callable[[], float] = time.time, budget: Budget | None = None) -> None:
        self.store = store
        self._clock = clock
        self._budget = budget or Budget()
        self._sweeper = asyncio.ensure_future(self._sweep_for_ever())

    def claim(self, tenant: str, entry: KVEntry) -> str:
        if not NAME.fullmatch(entry.namespace):
            raise InvalidArgument(
                f"the namespace is named {entry.namespace!r:.80}: use up to 128 letters, digits, dots, dashes and _"
            )
        return entry.namespace

    async def prepare(self, tenant: str, resource: str) -> None:
        await self.store.create(Space(tenant, resource), self._clock())

    async def exists(self, tenant: str, resource: str) -> bool:
        return await self.store.exists(Space(tenant, resource))

    async def holdings(self, tenant: str) -> list[str]:
        return [namespace.name for namespace in await self.store.namespaces(tenant)]

    async def usage(self, tenant: str) -> dict[str, int]:
        total = await self.store.total(tenant)
        return {"kv_keys": total.keys, "kv_bytes": total.bytes}

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        self.store.bound(tenant, Bound(most["kv_keys"], most["kv_bytes"]))

    async def close(self) -> None:
        self._sweeper.cancel()
        await self.store.close()

    # Reading

    @op("kv.get")
    @named("GET")
    async def get(self, call: OpCall) -> Reply:
        """One value; for a large one the first piece, and the number to read the rest with."""
        key = limits.checked_key(call.meta.get("key"))
        limits.checked_cache_ttl(call.meta.get("cache_ttl"))
        [entry], is_held = await self._look_up(space_of(call), [key])
        if entry is None:
            return Reply({"found": False})
        return self._answer(call, {"found": True, "metadata": entry.metadata}, entry.value, is_held)

    @op("kv.get_many")
    @named("GET_BULK")
    async def get_many(self, call: OpCall) -> Reply:
        """Several values in one body; `sizes` has the length of each, null for a missing key."""
        keys = limits.checked_keys(call.meta.get("keys"))
        limits.checked_cache_ttl(call.meta.get("cache_ttl"))
        entries, is_held = await self._look_up(space_of(call), keys)
        sizes = [None if entry is None else len(entry.value) for entry in entries]
        metadata = [None if entry is None else entry.metadata for entry in entries]
        body = b"".join(entry.value for entry in entries if entry is not None)
        return self._answer(call, {"sizes": sizes, "metadata": metadata}, body, is_held)

    async def _look_up(self, space: Space, keys: Sequence[bytes]) -> tuple[Found, bool]:
        """The entries of some keys, and whether their bytes were taken from the budget: values larger than a piece are
        not read before there is room for them."""
        now, tenant = self._clock(), space.tenant
        try:
            return await self.store.get(space, keys, now, PIECE), False
        except TooMuch:
            await self._budget.wait_for(tenant, limits.MAX_VALUE)
        held = limits.MAX_VALUE
        try:
            entries = await self.store.get(space, keys, now, limits.MAX_VALUE)
            size = sum(len(entry.value) for entry in entries if entry is not None)
            held = 0
            self._budget.give(tenant, limits.MAX_VALUE - size)
            return entries, True
        finally:
            self._budget.give(tenant, held)

    def _answer(self, call: OpCall, meta: dict[str, object], body: bytes, is_held: bool) -> Reply:
        if not is_held:
            return Reply(meta, body)
        download = ValueDownload(body, self._budget, call.scope.version.tenant)
        meta |= {"size": len(body), "reader": call.scope.keep(download)}
        return Reply(meta, self._next(call, meta["reader"]))

    @op("kv.read", free=True)
    def read(self, call: OpCall) -> Reply:
        """The next piece of a value, whose length the worker knows."""
        number = call.meta.get("reader")
        if call.meta.get("cancel") is True:
            call.scope.release(number)
            return Reply()
        return Reply({}, self._next(call, number))

    def _next(self, call: OpCall, number: object) -> bytes:
        download = call.scope.find(number, ValueDownload)
        piece = download.take(PIECE)
        if download.is_over:
            call.scope.release(number)
        return piece

    @op("kv.list")
    @named("GET")
    async def list(self, call: OpCall) -> Reply:
        """Keys, sorted by their bytes, as JSON in the body."""
        meta = call.meta
        limit = limits.checked_limit(meta.get("limit"))
        prefix = limits.checked_prefix(meta.get("prefix"))
        after = limits.checked_cursor(meta.get("cursor"))
        page = await self.store.list(space_of(call), prefix, after, limit, self._clock())
        cursor = None if page.after is None else limits.cursor_of(page.after)
        return Reply({"cursor": cursor}, msgspec.json.encode([shown(*listed) for listed in page.keys]))

    # Writing

    @op("kv.put")
    @named("PUT")
    async def put(self, call: OpCall) -> Reply:
        """Store the body, or a value that was uploaded under a number."""
        meta, now = call.meta, self._clock()
        key = limits.checked_key(meta.get("key"))
        expires_at = limits.checked_expiry(meta.get("ttl"), meta.get("expiration"), now)
        metadata = limits.checked_metadata(meta.get("metadata"))
        value = call.body
        number = meta.get("upload")
        if number is not None:
            value = call.scope.find(number, ValueUpload).whole()
        try:
            await self.store.put(
                space_of(call), [(key, StoredValue(limits.checked_value(value), metadata, expires_at))]
            )
        finally:
            call.scope.release(number)
        return Reply()

    @op("kv.upload", free=True)
    @named("PUT")
    async def upload(self, call: OpCall) -> Reply:
        """A piece of a value that comes as a stream. The first piece has no number; the reply gives one."""
        number = call.meta.get("upload")
        if number is None:
            number = call.scope.keep(ValueUpload(self._budget, call.scope.version.tenant))
        call.scope.find(number, ValueUpload).add(call.body)
        return Reply({"upload": number})

    @op("kv.delete")
    @named("DELETE")
    async def delete(self, call: OpCall) -> Reply:
        """Delete a key. A missing key is not an error."""
        await self.store.delete(space_of(call), [limits.checked_key(call.meta.get("key"))])
        return Reply()

    # Expired entries

    async def sweep(self, before: float | None = None) -> None:
        """Delete dropped namespaces and entries that expired long ago, in steps: other writes run in between."""
        while True:
            if not await self.store.sweep(self._clock() - SWEPT_AFTER if before is None else before):
                return
            await asyncio.sleep(0.05)

    async def _sweep_for_ever(self) -> None:
        """Delete entries that expired long ago. Not in the hour after a start or a jump of the clock: the clock may be
        wrong and be corrected."""
        watch, trusted_at = ClockWatch(self._clock), seconds_up() + SWEPT_AFTER
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                leap = watch.leap()
                if abs(leap) > SWEPT_AFTER / 2:
                    log.warning("the clock jumped by %.0f s: KV deletes no expired entries for an hour", leap)
                    trusted_at = seconds_up() + SWEPT_AFTER
                await self.sweep(None if seconds_up() >= trusted_at else 0)
            except StorageFailed as error:
                log.error("sweeping KV failed: %s", error)
            except Exception:
                log.exception("sweeping KV failed")


def space_of(call: OpCall) -> Space:
    return Space(call.scope.version.tenant, call.grant.resource)


def shown(key: bytes, metadata: str | None, expires_at: int | None) -> dict[str, object]:
    """A key as list() returns it."""
    entry: dict[str, object] = {"name": key.decode("utf-8", "replace")}
    if expires_at is not None:
        entry["expiration"] = expires_at
    if metadata is not None:
        entry["metadata"] = msgspec.Raw(metadata.encode())
    return entry
