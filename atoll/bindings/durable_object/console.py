"""Asks an object for operators: what it stores, its alarm, SQL. The engine answers (web/objects/console.js).

SQL and stored values are hostile, so they are read in the engine where the object lives, and never here. The answer is
JSON made beside the tenant's code: its shape is checked, and the rows in it are passed on as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any, TypeVar

import msgspec

from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.bindings.durable_object.namespaces import ObjectNamespace
from atoll.bindings.services import InnerCalls, InnerRequest, ObjectTarget, Workers
from atoll.errors import CalleeFailed
from atoll.wire.generated import INLINE_BODY, Event

T = TypeVar("T")

MAX_ANSWER = 8 << 20  # bytes; console.js bounds the characters
MAX_MESSAGE = 4_096
EVENT = int(Event.EVENT)


class StoredTable(msgspec.Struct):
    name: str
    type: str  # "table" or "view"
    sql: str  # the statement that made it
    rows: int | None  # -1: more than 10,000; null: of a view


class StoredKey(msgspec.Struct):
    key: str
    bytes: int
    value: str | None  # as console.log() shows it; null if it is larger than 64 KB


class StoredState(msgspec.Struct):
    bytes: int
    alarm: int | None  # milliseconds since 1970
    tables: list[StoredTable]
    keys: list[StoredKey]
    next: int | None  # where the next page of keys begins


class SqlRows(msgspec.Struct):
    columns: list[str]
    rows: msgspec.Raw
    rows_read: int
    rows_written: int


class ConsoleRefusal(msgspec.Struct):
    message: str = ""


class ObjectConsole:
    def __init__(self, inner: InnerCalls, workers: Workers) -> None:
        self._inner = inner
        self._workers = workers

    async def ask(self, namespace: ObjectNamespace, id: str, question: Mapping[str, Any], answer: type[T]) -> T:
        """The answer of an object. Refused if it cannot answer, or if it says why not."""
        version = self._workers.find_worker(namespace.tenant, namespace.worker)
        if version is None:
            raise Refused(ApiCode.NOT_FOUND, f"the worker `{namespace.worker}` is not there", "deploy it")
        target = ObjectTarget(namespace.id, id, namespace.class_name, namespace.is_sql)
        body = msgspec.json.encode(question)
        if len(body) > INLINE_BODY:  # the body of an event is not streamed
            raise bad_body("the SQL and its parameters are too large", f"send at most {INLINE_BODY >> 10} KB")
        head = f"objectconsole CONSOLE {namespace.class_name}\n{{}}".encode()
        call = self._inner.start(InnerRequest(version, head, body, True, event=EVENT, target=target))
        whole = BytesIO()
        try:
            status = (await call.response()).status
            while whole.tell() <= MAX_ANSWER and (chunk := await call.read()):
                whole.write(chunk)
        except CalleeFailed as failed:
            message = failed.failure.message[:MAX_MESSAGE]
            raise Refused(ApiCode.UNAVAILABLE, f"the object does not answer: {message}", "try again") from None
        finally:
            call.close()
        if whole.tell() > MAX_ANSWER:
            raise bad_body("the answer of the object is too large", "ask for less")
        return _read(whole.getvalue(), status, answer)


def _read(data: bytes, status: int, answer: type[T]) -> T:
    try:
        if status == 200:
            return msgspec.json.decode(data, type=answer)
        message = msgspec.json.decode(data, type=ConsoleRefusal).message
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Refused(
            ApiCode.UNAVAILABLE, "the answer of the object cannot be read", "its worker may have changed JSON"
        ) from None
    raise bad_body(f"the object refused: {message[:MAX_MESSAGE]}", "nothing was changed")
