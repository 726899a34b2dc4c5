"""A worker that tampers with our JavaScript can send bindings anything. None of it may be a bug in Python."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from atoll.bindings.base import Later
from atoll.bindings.scope import CallScope
from atoll.broker import Broker, OpRefusal
from atoll.wire.generated import ErrorCode
from atoll.workers import Grant, Limits
from tests.engine.engine_room import HELLO, EngineRoom, script

DEEP = "[" * 400 + "]" * 400
# JSON texts, including some that JSON.stringify never writes
ODD = [
    "null",
    "true",
    "-1",
    "0",
    "1",
    "1.5",
    "1e308",
    "1e999",
    "-1e999",
    "NaN",
    "9007199254740993",
    "1" + "0" * 400,
    "9" * 5_000,
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"x\\r\\ny: z"',
    json.dumps("x" * 100_000),
    "[]",
    "[[]]",
    "[null]",
    '["a", 1]',
    "{}",
    DEEP,
    '{"__proto__": 1, "a": 1, "a": 2}',
    '[{"type": "json", "size": -1}]',
    '[{"type": [], "size": 1e999}]',
    '"constructor"',
    '"GET"',
    '"CONNECT"',
    '"POST"',
    '"http://localhost/"',
    '"http://\\ud800.example/"',
    '"http://[::1]:99999/"',
    '"//"',
    '"SELF"',
    '"a: b\\r\\n"',
    '"\\u0000: b\\r\\n"',
    '"host: a\\r\\nhost: b\\r\\ncontent-length: 1\\r\\n"',
    '{"cacheTtl": 1e999, "cacheEverything": []}',
]
FIELDS = {
    "ratelimit.limit": {"key": '"k"'},
    "ai.run": {"model": '"m"', "task": '"chat"', "stream": "true"},
    "ai.read": {"stream": "1", "cancel": "false"},
    "ai.models": {},
    "email.forward": {"key": '"x"', "to": '"a@b.example"', "headers": "[]"},
    "email.reply": {"key": '"x"', "from": '"a@b.example"', "to": '"a@b.example"'},
    "send_email.send": {"from": '"a@b.example"', "to": '["a@b.example"]'},
    "d1.query": {},
    "cache.match": {"method": '"GET"', "url": '"http://a/"', "head": '""', "name": '"n"', "request": '""'},
    "cache.read": {"reader": "1", "cancel": "false"},
    "cache.put": {
        "method": '"GET"', "url": '"http://a/"', "head": '""', "status": "200", "name": '""', "stream": "true",
        "request": '""', "response": '""', "manual": "true",
    },
    "cache.write": {"upload": "1", "cancel": "false", "ended": "true"},
    "cache.delete": {"method": '"GET"', "url": '"http://a/"', "head": '""', "name": '"n"'},
    "pipe.open": {},
    "pipe.write": {"pipe": '"x"', "thrown": "null", "ended": "true"},
    "pipe.read": {"pipe": '"x"'},
    "pipe.cancel": {"pipe": '"x"'},
    "tcp.open": {
        "socket": "1", "host": '"127.0.0.1"', "port": "1", "tls": "true", "name": '"a"', "ca": '"x"',
        "unchecked": "true",
    },
    "tcp.read": {"socket": "1"},
    "tcp.write": {"socket": "1", "ended": "true"},
    "tcp.secure": {"socket": "1", "name": '"a"', "ca": '"x"', "unchecked": "true"},
    "tcp.close": {"socket": "1"},
    "dns.lookup": {"host": '"localhost"'},
    "dns.resolve": {"host": '"localhost"', "type": '"TXT"'},
    "queue.send": {"messages": '[{"type": "json", "size": 1, "delay": 0}]', "delay": "0"},
    "fetch.start": {
        "fetch": "1", "method": '"GET"', "url": '"http://127.0.0.1:1/"', "head": '""', "service": '"SELF"',
        "streamed": "false", "length": "1", "upgrade": "false", "cf": "null",
    },
    "fetch.read": {"fetch": "1", "raw": "true"},
    "fetch.send": {"fetch": "1", "raw": "true"},
    "fetch.write": {"fetch": "1", "ended": "true"},
    "fetch.hand_over": {"fetch": "1"},
    "fetch.cancel": {"fetch": "1"},
    "object_history.current": {},
    "object_history.at": {"at": "1"},
    "object_history.restore": {"bookmark": '"x"'},
    "durable_object.call": {
        "method": '"m"', "path": "[]", "id": '"' + "0" * 64 + '"', "object": '"name"', "session": "1", "caps": "true",
        "pipes": "[]",
    },
    "rpc.send": {"m": '[[1, "c", 1, 0, ["name"], 0]]'},
    "rpc.receive": {},
    "rpc.clone": {"name": '"a"', "to": '"b"'},
    "rpc.facet": {"name": '"a"', "reason": '"why"', "deletes": "true"},
    "rpc.reach": {"name": '"Named"', "method": '"m"', "pipes": "[]"},
    "service.call": {"method": '"m"', "pipes": "[]"},
    "workflow.call": {"instance": '"i"', "method": '"status"'},
    "workflow_instance.begin": {},
    "workflow_instance.report": {
        "instance": '"i"', "status": '"running"', "created": "1", "started": "1", "ended": "1", "keep": "1",
    },
    "echo.say": {"x": "1"},
    "echo.wait": {"ms": "1"},
    "kv.get": {"key": '"k"', "cache_ttl": "60"},
    "kv.get_many": {"keys": '["k"]', "cache_ttl": "60"},
    "kv.read": {"reader": "1", "cancel": "false"},
    "kv.list": {"limit": "10", "prefix": '"p"', "cursor": '"c"'},
    "kv.put": {"key": '"k"', "ttl": "60", "expiration": "9999999999", "metadata": "1", "upload": "1"},
    "kv.upload": {"upload": "1", "ended": "true"},
    "kv.delete": {"key": '"k"'},
    "secrets_store_secret.get": {},
    "analytics_engine.write": {"doubles": "1", "index": "1", "blobs": "[1, null]"},
    "r2.head": {"key": '"k"'},
    "r2.get": {
        "key": '"k"', "range": '{"offset": 0, "length": 1}', "onlyIf": '{"etagMatches": [["*", false]]}',
    },
    "r2.read": {"reader": "1", "cancel": "false"},
    "r2.send": {"reader": "1"},
    "r2.list": {
        "prefix": '"p"', "delimiter": '"/"', "cursor": '"c"', "startAfter": '"a"', "limit": "10", "include": "[]",
    },
    "r2.put": {
        "key": '"k"', "http": '{"contentType": "t"}', "custom": '{"a": "b"}', "storageClass": '"Standard"',
        "onlyIf": '{"uploadedBefore": 1}', "hash": '["md5", "00"]', "length": "100",
    },
    "r2.write": {"upload": "1", "ended": "true", "cancel": "false", "isPart": "true"},
    "r2.delete": {"keys": '["k"]'},
    "r2.create": {"key": '"k"', "http": "{}", "custom": "{}", "storageClass": '"Standard"'},
    "r2.part": {"key": '"k"', "uploadId": '"u"', "number": "1", "length": "100"},
    "r2.complete": {"key": '"k"', "uploadId": '"u"', "parts": '[[1, "e"]]'},
    "r2.abort": {"key": '"k"', "uploadId": '"u"'},
}  # fmt: skip
KINDS = {
    "queue": "0 jobs",
    "kv": "space",
    "r2": "bucket",
    "service": '{"service":"other"}',
    "ratelimit": "1 10 10",
    "echo": "",
    "cache": "c",
    "pipe": "",
    "d1": "database",
    "secrets_store_secret": "shared/KEY",
    "analytics_engine": "visits",
    "mtls_certificate": "bank",
    "origin": "http://127.0.0.1:1",
    "durable_object": '{"class_name":"Counter"}',
    "workflow": '{"workflow":"orders"}',
}


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[EngineRoom]:
    async with EngineRoom(tmp_path) as room:
        yield room


def metas(fields: dict[str, str]) -> list[str]:
    """Each field with each odd value, with and without the other fields; and each field left out."""
    found = ["{}", "[]", "", "nonsense", '"text"', DEEP, '{"a":' * 600 + "1" + "}" * 600, '{"binding": "B"}']
    for name in [*fields, "binding"]:
        for odd in ODD:
            for others in (fields, {}):
                given = {"binding": '"B"', **others, name: odd}
                found.append("{" + ", ".join(f'"{key}": {value}' for key, value in given.items()) + "}")
    for name in fields:
        given = {"binding": '"B"', **fields}
        del given[name]
        found.append("{" + ", ".join(f'"{key}": {value}' for key, value in given.items()) + "}")
    return found


async def test_no_odd_argument_causes_an_internal_error_in_any_op(
    room: EngineRoom, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    broker = Broker(room.bindings.values())
    names = sorted(name for binding in room.bindings.values() for name in binding.ops())
    assert set(FIELDS) == set(names)
    await room.bindings["queue"].prepare("default", "0 jobs")
    await room.bindings["kv"].prepare("default", KINDS["kv"])
    await room.bindings["r2"].prepare("default", KINDS["r2"])
    room.workers["other"] = script(HELLO, "other")
    for op in broker.bind(names):
        grants = {"B": Grant("B", op.kind, KINDS.get(op.kind, "")), "SELF": Grant("SELF", "service", KINDS["service"])}
        for meta in metas(FIELDS[op.name]):
            for body in (b"", b"\xff\0x"):
                limits = Limits(cpu_ms=50)
                scope = CallScope(script(HELLO, grants=grants, limits=limits))
                said: list[object] = []
                task = broker.answer(op, scope, meta.encode("utf-8", "surrogatepass"), body, said.append)
                if isinstance(task, asyncio.Task):
                    await asyncio.wait((task,), timeout=0.5)
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                elif isinstance(task, Later):
                    task.cancel()
                scope.close()
                bugs = [one for one in said if isinstance(one, OpRefusal) and one.code == ErrorCode.INTERNAL]
                assert not bugs and not caplog.records, (op.name, meta[:300], caplog.text[-3000:])
