"""Serves static assets of versions, in front of the pool: most files never reach an engine.

`Site` is a CallPool. It answers what the version's assets answer and passes every other call on to the pool, so clients
and other workers of the node are served by the same rules. A small file in memory is answered in one chain of calls, as
the answer of a worker; its response is kept, and ready.py answers the next request for it. A larger one is a FileCall,
with the same credit as the body of a worker; to a client without TLS the kernel copies it (sendfile).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from atoll.asset_files.reading import SmallFiles, read_file
from atoll.asset_files.store import Bring
from atoll.assets.messages import (
    SUFFIXES,
    FileAnswer,
    Wanted,
    answer_with,
    block_for,
    plain_headers,
)
from atoll.assets.table import Answer, AssetFile, AssetTable
from atoll.engine.calls.call import CallListener
from atoll.engine.calls.isolate_state import IsolateState
from atoll.errors import Failure
from atoll.front.exchange import ClientExchange
from atoll.front.file_call import DONE, MISSING, Answered, BringPlace, FileCall, bringing
from atoll.front.http1 import header
from atoll.front.late_files import LateFiles, ReadFiles, WaitingCall
from atoll.front.ready import CountAsset, ReadyFiles
from atoll.router import resolved
from atoll.wire.generated import ErrorCode
from atoll.workers import Version

log = logging.getLogger("atoll.front")

THREADS: Final = 4


class Site:
    """`pool` takes the calls that assets do not answer."""

    def __init__(
        self,
        pool: Any,
        memory: int,
        count: CountAsset,
        read_files: ReadFiles | None = None,
        base: str = "localhost",
        bring: Bring | None = None,
    ) -> None:
        self._pool = pool
        self._bring = bring
        self.late = LateFiles(read_files)
        self.ready = ReadyFiles(memory // 2, count, base)
        self.suspended = self.ready.suspended
        self._small = SmallFiles(memory // 2)
        self._count = count
        self._threads = ThreadPoolExecutor(THREADS, "files")

    def close(self) -> None:
        self.late.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def suspend(self, tenant: str, *, is_suspended: bool) -> None:
        """Serve nothing of a tenant: its calls go to the pool, which refuses them."""
        if is_suspended:
            self.suspended.add(tenant)
        else:
            self.suspended.discard(tenant)

    def call(
        self,
        version: Version,
        head: bytes,
        body: bytes,
        ended: bool,
        caller: CallListener,
        event: int = 0,
        hops: int = 0,
        near: IsolateState | None = None,
    ) -> Any:
        """Start a call. Never raises; failures go to `caller`, possibly before this returns."""
        table = version.assets
        if table is None or event or (self.suspended and version.tenant in self.suspended):  # which the pool refuses
            return self._pool.call(version, head, body, ended, caller, event, hops, near)
        source = table.source
        if not source.is_here:
            start = partial(self.call, version, head, body, ended, caller, event, hops)
            return self.late.wait(version.tenant, source, WaitingCall(caller, start))
        if not version.has_code:
            self.late.used(source)
            table.files = source.files
        method, host, target = request_of(head)
        path, _, query = target.partition("?")
        lower = head.lower()
        is_navigation = table.has_worker and header(lower, b"sec-fetch-mode") == b"navigate"
        answer = table.answer(method, host, path, query, is_navigation)
        if answer is None:
            return self._pool.call(version, head, body, ended, caller, event, hops, near)
        if not ended:
            caller.on_upload_stop()
        if answer.file is None:
            self._count(version, answer.status, 0)
            caller.on_response(answer.status, block_for(table, host, path, plain_headers(answer)), b"", True)
            return DONE
        return self._send(version, table, answer, method, host, path, lower, caller)

    def _send(
        self,
        version: Version,
        table: AssetTable,
        answer: Answer,
        method: str,
        host: str,
        path: str,
        lower: bytes,
        caller: CallListener,
    ) -> Any:
        file = answer.file
        assert file is not None
        wanted = wanted_in(lower)
        found = answer_with(file, answer.status, wanted)
        block = block_for(table, host, path, found.headers)
        size = found.end - found.start
        if method == "HEAD":
            self._count(version, found.status, 0)
            if found.status != 304:
                block = b"content-length: %d\r\n%b" % (size, block)
            caller.on_response(found.status, block, b"", True)
            return DONE
        self._count(version, found.status, size)
        if not size:
            caller.on_response(found.status, block, b"", True)
            return DONE
        place = file.place + SUFFIXES[found.coding]
        whole = self._small.get(f"{place}#{file.etag}")
        if whole is not None:
            content = whole[found.start : found.end] if found.status == 206 else whole
            is_usual = found.status == 200 and not (wanted.range or wanted.authorization)
            if is_usual and answer.is_own and table.is_keepable and isinstance(caller, ClientExchange):
                self.ready.keep(version, table, path, file, found.coding, block, whole)
            caller.on_response(found.status, block, content, True)
            return DONE
        if found.status != 206 and self._small.takes(size):
            return self._read(version.tenant, place, file, found, block, caller)
        call = FileCall(self._threads, caller, place, found, block, self._bringing(version.tenant))
        call.begin()
        return call

    def _read(
        self, tenant: str, place: str, file: AssetFile, found: FileAnswer, block: bytes, caller: CallListener
    ) -> Any:
        """Read a small file in a thread, answer with it, and keep it in memory."""
        keep = partial(self._small.put, tenant, f"{place}#{file.etag}")
        call = SmallFileCall(self._threads, caller, place, (found.status, block, found.end - found.start), keep)
        call.begin(self._bringing(tenant))
        return call

    def _bringing(self, tenant: str) -> BringPlace | None:
        return None if self._bring is None else partial(self._bring, tenant)


class SmallFileCall(Answered):
    """A call that waits for a small file. The PoolCall of its exchange."""

    __slots__ = ("_answer", "_caller", "_keep", "_place", "_threads", "within")

    def __init__(
        self,
        threads: ThreadPoolExecutor,
        caller: CallListener,
        place: str,
        answer: tuple[int, bytes, int],
        keep: Callable[[bytes], None],
    ) -> None:
        """`answer`: status, header lines, and size of the file."""
        self._threads = threads
        self._caller: CallListener | None = caller
        self._place = place
        self._answer = answer
        self._keep = keep
        self.within: object = None

    def begin(self, bring: BringPlace | None) -> None:
        future = asyncio.get_running_loop().run_in_executor(self._threads, read_file, self._place)
        future.add_done_callback(partial(self._done, bring))

    def _done(self, bring: BringPlace | None, future: asyncio.Future[bytes]) -> None:
        error = None if future.cancelled() else future.exception()
        if isinstance(error, FileNotFoundError) and bring is not None and self._caller is not None:
            bringing(bring, self._place, self._brought)
        elif future.cancelled() or error is not None:
            self._fail(error)
        else:
            self._send(future.result())

    def _brought(self, error: BaseException | None) -> None:
        if error is not None:
            self._fail(error)
        elif self._caller is not None:
            self.begin(None)

    def _send(self, content: bytes) -> None:
        status, block, size = self._answer
        if len(content) != size:
            self._fail(OSError(f"it has {len(content)} bytes on disk instead of {size}"))
            return
        self._keep(content)
        caller, self._caller = self._caller, None
        if caller is not None:
            caller.on_response(status, block, content, True)

    def _fail(self, error: BaseException | None) -> None:
        log.error("an asset cannot be read: %s", error)
        caller, self._caller = self._caller, None
        if caller is not None:
            caller.on_failure(Failure(ErrorCode.STORAGE, MISSING))

    def cancel(self) -> None:
        self._caller = None

    def refuse(self, failure: Failure) -> None:
        self._caller = None


def request_of(head: bytes) -> tuple[str, str, str]:
    """Method, host and target of a call's head. The target is ASCII, with dot segments resolved."""
    line = head[: head.index(b"\n")]
    method, _, url = line.partition(b" ")
    start = url.index(b"//") + 2
    slash = url.find(b"/", start)
    if slash < 0:
        slash = len(url)
    host = url[start:slash].decode("latin-1").lower().partition(":")[0]
    target = resolved(url[slash:] or b"/")
    text = target.decode("ascii") if target.isascii() else quote(target, safe="%/:?#[]@!$&'()*+,;=~-._|^`{}<>\"\\")
    return method.decode("latin-1"), host, text


def wanted_in(lower: bytes) -> Wanted:
    """The headers that matter, from the head of a call in lower case."""
    return Wanted(
        header(lower, b"if-none-match") or b"",
        header(lower, b"range") or b"",
        header(lower, b"if-range") or b"",
        header(lower, b"accept-encoding") or b"",
        header(lower, b"authorization") or b"",
    )
