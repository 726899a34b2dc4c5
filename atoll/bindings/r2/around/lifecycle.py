"""Lifecycle rules of a bucket: objects that expire, and unfinished uploads that are given up, after some days.

Runs in the background, a page at a time. An object is deleted only if it is still the version that was looked at.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable
from typing import ClassVar

import msgspec

from atoll.bindings.r2.around.settings import BucketSettings, Setting
from atoll.bindings.r2.limits import MAX_KEY, R2Refused
from atoll.bindings.r2.store import UPLOAD_DAYS, BucketPlace, ListQuery, ObjectStore
from atoll.errors import InvalidArgument, StorageFailed

log = logging.getLogger("atoll.bindings")

ID = re.compile(r"[\w .:/-]{1,255}")
MAX_RULES = 100
MAX_DAYS = 36_500
DAY_MS = 86_400_000
PAGE = 500  # objects that are looked at in one step
STEP = 200  # objects that are deleted in one write: other writes wait a few ms for it
PAUSE_SECONDS = 0.02  # between two steps
ROUND_SECONDS = 3600.0  # between two rounds over all buckets


class LifecycleRule(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    id: str
    prefix: str = ""
    expire_days: int | None = None
    abort_days: int | None = None
    enabled: bool = True


class LifecycleRules(Setting, forbid_unknown_fields=True):
    KIND: ClassVar[str] = "lifecycle"

    rules: list[LifecycleRule]


def checked_lifecycle(wanted: LifecycleRules) -> LifecycleRules:
    """InvalidArgument if a rule is not valid."""
    if len(wanted.rules) > MAX_RULES:
        raise InvalidArgument(f"a bucket has at most {MAX_RULES:,} lifecycle rules")
    if len({rule.id for rule in wanted.rules}) < len(wanted.rules):
        raise InvalidArgument("two lifecycle rules have the same id")
    for rule in wanted.rules:
        if not ID.fullmatch(rule.id):
            raise InvalidArgument(f"the id of a lifecycle rule is {rule.id!r:.80}: use letters, digits, - and _")
        if len(rule.prefix.encode("utf-8", "replace")) > MAX_KEY:
            raise InvalidArgument(f"the prefix of a lifecycle rule has more than {MAX_KEY:,} bytes")
        if rule.expire_days is None and rule.abort_days is None:
            raise InvalidArgument("a lifecycle rule must say after how many days objects expire or uploads are aborted")
        if rule.expire_days is not None and not 1 <= rule.expire_days <= MAX_DAYS:
            raise InvalidArgument(f"objects can expire after 1 to {MAX_DAYS:,} days")
        if rule.abort_days is not None and not 1 <= rule.abort_days <= UPLOAD_DAYS:
            raise InvalidArgument(
                f"uploads can be aborted after 1 to {UPLOAD_DAYS} days: none is kept for more than {UPLOAD_DAYS}"
            )
    return wanted


class Ages:
    """How old objects may become, by their prefixes."""

    def __init__(self, rules: Iterable[tuple[str, int | None]]) -> None:
        self._most: dict[bytes, int] = {}  # prefix -> milliseconds
        for prefix, days in rules:
            if days is not None:
                key = prefix.encode("utf-8", "replace")
                self._most[key] = min(days * DAY_MS, self._most.get(key, days * DAY_MS))
        self._lengths = sorted({len(prefix) for prefix in self._most})

    def roots(self) -> list[bytes]:
        """The prefixes that no other one covers."""
        found: list[bytes] = []
        for prefix in sorted(self._most):
            if not found or not prefix.startswith(found[-1]):
                found.append(prefix)
        return found

    def is_over(self, key: bytes, age: int) -> bool:
        """Whether an object of this age has expired."""
        return any(age >= self._most.get(key[:length], age + 1) for length in self._lengths)


class Lifecycle:
    """Applies the rules of all buckets. `start` on the event loop."""

    def __init__(self, store: ObjectStore, settings: BucketSettings, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            try:
                await self.sweep()
            except StorageFailed as error:
                log.error("R2 cannot apply lifecycle rules: %s", error)
            except Exception:
                log.exception("R2 cannot apply lifecycle rules")
            await asyncio.sleep(ROUND_SECONDS)

    async def sweep(self) -> None:
        """One round over all buckets with rules. Each object is looked at once, however many rules there are."""
        now = int(self._clock() * 1000)
        for place, found in await self._settings.all(LifecycleRules):
            rules = [rule for rule in found.rules if rule.enabled]
            try:
                await self._expire(place, Ages((rule.prefix, rule.expire_days) for rule in rules), now)
                for rule in rules:
                    if rule.abort_days is not None:
                        await self._abort(place, rule.prefix.encode(), now - rule.abort_days * DAY_MS)
            except R2Refused as error:  # the bucket is gone, or its notifications have no room
                log.info("R2: the lifecycle rules of %s were not applied: %s", place.bucket, error)

    async def _expire(self, place: BucketPlace, ages: Ages, now: int) -> None:
        for prefix in ages.roots():
            start: bytes | None = b""
            while start is not None:
                page = await self._store.list(place, ListQuery(prefix, b"", start, PAGE))
                old = [(each.key, each.version) for each in page.objects if ages.is_over(each.key, now - each.uploaded)]
                for first in range(0, len(old), STEP):
                    await self._store.expire(place, old[first : first + STEP])
                    await asyncio.sleep(PAUSE_SECONDS)
                start = page.start
                await asyncio.sleep(PAUSE_SECONDS)

    async def _abort(self, place: BucketPlace, prefix: bytes, before: int) -> None:
        after = (b"", "")
        while True:
            found = await self._store.uploads(place, prefix, after, PAGE)
            for each in found:
                if each.created_at <= before:
                    await self._store.abort(place, each.key, each.id)
            if len(found) < PAGE:
                return
            after = (found[-1].key, found[-1].id)
            await asyncio.sleep(PAUSE_SECONDS)
