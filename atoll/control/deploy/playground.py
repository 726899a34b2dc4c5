"""Runs a draft once: a worker that has no name, no route and no version, and is gone with its answer.

The draft is checked as a deploy is, and loaded in an isolate of its own by the engines that its tenant uses anyway.
Everything it may take is bounded: its own limits, the bytes of the answer, the time for its record, and the runs of a
tenant at a time. It has no bindings, so a run changes no data.
"""

from __future__ import annotations

import base64
from collections import Counter
from dataclasses import dataclass

import msgspec

from atoll.api.callers import Caller
from atoll.api.refusals import ApiCode, Refused
from atoll.bindings.services import InnerCall, InnerRequest
from atoll.control.checks.body import DeployBody
from atoll.control.deploy.deployer import Deployer
from atoll.errors import CalleeFailed
from atoll.logs import Invocation
from atoll.observe.live import Listener
from atoll.observe.records import LogEntry, entry_of, row_of
from atoll.observe.store import LogStore
from atoll.workers import Limits

NAME = "playground"
MAX_ANSWER = 512 << 10  # bytes of a response body that are kept; more are dropped
MAX_HEADERS = 100
MAX_VALUE = 2_000  # characters of a header
MAX_RUNS = 4  # of a tenant at a time
RECORD_SECONDS = 3.0  # from the end of the response to the record: waitUntil() may go on longer


class DraftAnswer(msgspec.Struct, omit_defaults=True):
    """What a draft did with one request."""

    outcome: str
    status: int
    headers: list[tuple[str, str]]
    body: str  # text, or base64 if `is_binary`
    is_binary: bool
    is_cut: bool  # there was more than is kept
    startup_ms: float
    limits: Limits
    record: LogEntry | None  # null: the call still runs, in waitUntil()


@dataclass
class DraftResponse:
    """A response as it came."""

    status: int = 0
    head: bytes = b""
    body: bytes = b""
    is_cut: bool = False
    failure: str = ""


class Playground:
    def __init__(self, deployer: Deployer, logs: LogStore) -> None:
        self._deployer = deployer
        self._logs = logs
        self._runs: Counter[str] = Counter()  # by tenant

    async def run(self, body: DeployBody, head: bytes, sent: bytes, by: Caller) -> DraftAnswer:
        """Refused if the draft cannot be loaded: then the refusal names the place."""
        if self._runs[by.tenant] >= MAX_RUNS:
            raise Refused(ApiCode.QUOTA, f"{MAX_RUNS} drafts of this tenant run already", "wait until one is over")
        self._runs[by.tenant] += 1
        try:
            return await self._run(body, head, sent, by)
        finally:
            self._runs[by.tenant] -= 1
            if not self._runs[by.tenant]:
                del self._runs[by.tenant]

    async def _run(self, body: DeployBody, head: bytes, sent: bytes, by: Caller) -> DraftAnswer:
        draft = await self._deployer.try_draft(NAME, body, by)
        listener = self._logs.listen(draft.id)
        try:
            assert self._deployer.calls is not None, "a draft before there are engines"
            call = self._deployer.calls.start(InnerRequest(draft.version, head, sent))
            try:
                heard = await self._answer(call)
                record = await _record(listener)
            finally:
                call.close()
        finally:
            self._logs.unlisten(draft.id, listener)
            self._deployer.drop_draft(draft)
        entry = None if record is None else entry_of(row_of(record))
        is_text, text = _text(heard.body)
        return DraftAnswer(
            outcome=entry.outcome if entry else ("exception" if heard.failure else "ok"),
            status=heard.status,
            headers=_headers(heard.head),
            body=text,
            is_binary=not is_text,
            is_cut=heard.is_cut,
            startup_ms=draft.startup_ms,
            limits=draft.version.limits,
            record=entry,
        )

    async def _answer(self, call: InnerCall) -> DraftResponse:
        heard, chunks, size = DraftResponse(), [], 0
        try:
            response = await call.response()
            heard.status, heard.head = response.status, response.head
            while chunk := await call.read():
                size += len(chunk)
                if size > MAX_ANSWER:
                    chunks.append(chunk[: len(chunk) - (size - MAX_ANSWER)])
                    heard.is_cut = True
                    call.close()
                    break
                chunks.append(chunk)
        except CalleeFailed as error:
            heard.failure = error.failure.message
        heard.body = b"".join(chunks)
        return heard


async def _record(listener: Listener) -> Invocation | None:
    came = await listener.next(RECORD_SECONDS)
    records = came[0] if came is not None else []
    return next((each for each in records if isinstance(each, Invocation)), None)


def _headers(block: bytes) -> list[tuple[str, str]]:
    """Header lines of an engine, which may hold anything: they are shown, and never sent on."""
    pairs = [line.partition(":") for line in block.decode("latin-1").split("\r\n")[:MAX_HEADERS] if ":" in line]
    return [(name.strip().lower()[:MAX_VALUE], value.strip()[:MAX_VALUE]) for name, _, value in pairs]


def _text(body: bytes) -> tuple[bool, str]:
    try:
        return True, body.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start >= len(body) - 3 and len(body) == MAX_ANSWER:  # the cut is inside a character
            return True, body[: error.start].decode("utf-8")
        return False, base64.b64encode(body).decode()
