"""What a tenant's token may read or send in bulk: maps, crons, logs, lists, KV, queues."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

from tests.stalls.stage import Stage, attack

SAYS = """export default { fetch(request) {
  const { text, times } = JSON.parse(decodeURIComponent(new URL(request.url).search.slice(1)));
  console.log(text.repeat(times));
  return new Response("said");
} };"""
HELLO = "export default { fetch() { return new Response('hi'); }, scheduled() {} };"
MAP = {"version": 3, "sources": ["a.ts"], "names": [], "mappings": "AAAA,KAAE"}


def say(stage: Stage, worker: str, text: str, times: int) -> None:
    query = json.dumps({"text": text, "times": times})
    answer = stage.node.get(worker, "/?" + "".join(f"%{byte:02x}" for byte in query.encode()))
    assert answer.text == "said"


def with_map(stage: Stage, name: str, source_map: str) -> str:
    return stage.deploy(name, SAYS, source_maps={"worker.js": source_map})


def at_once(count: int, act: object, *args: object) -> None:
    threads = [threading.Thread(target=act, args=args) for _ in range(count)]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@attack("logs of empty lines, with a source map", memory_mb=96)
def empty_lines(stage: Stage) -> Iterator[None]:
    with_map(stage, "lines", json.dumps(MAP))
    frame = "\n    at worker.js:1:1\n"
    for text in ("\n", frame + "\n" * 500, "\n    at (((", "\n    at a (worker.js:1:6)"):
        say(stage, "lines", text, 60_000 // len(text))
    yield
    for _ in range(5):
        answer = stage.control("GET", "/api/workers/lines/logs?limit=1000")
        assert answer.status == 200


@attack("a source map that stands for a gigabyte", memory_mb=700)  # a job process may take 512 MB
def map_bomb(stage: Stage) -> Iterator[None]:
    with_map(stage, "bomb", json.dumps(MAP | {"mappings": ";" * 6_000_000}))
    say(stage, "bomb", "\n    at worker.js:1:1\n", 1)
    yield
    at_once(3, stage.control, "GET", "/api/workers/bomb/logs")


@attack("full logs, a thousand records at once", memory_mb=96)
def full_logs(stage: Stage) -> Iterator[None]:
    stage.deploy("talks", SAYS)
    for _ in range(40):
        say(stage, "talks", "€\n", 30_000)
    yield
    at_once(4, stage.control, "GET", "/api/workers/talks/logs?limit=1000")


@attack("crons of a hundred odd expressions, five times")
def odd_crons(stage: Stage) -> Iterator[None]:
    crons = [f"{i % 60} {i // 60} 29 2 *" for i in range(60)] + [f"{i} 5 29W,L-2 2 *" for i in range(40)]
    stage.deploy("crons", HELLO, crons=crons)
    yield
    at_once(5, stage.control, "GET", "/api/workers/crons/crons")


def namespace(stage: Stage, name: str) -> str:
    stage.control("POST", "/api/kv", {"name": name})
    return f"/api/kv/{name}"


@attack("KV bulk of three million objects", memory_mb=700)
def many_pairs(stage: Stage) -> Iterator[None]:
    at = namespace(stage, "many")
    body = b"[" + b'{"key":"a","value":"b"},' * 3_000_000 + b'{"key":"a","value":"b"}]'
    yield
    assert stage.control("POST", f"{at}/bulk", body).status == 400


@attack("KV bulk of many small values below a megabyte", memory_mb=700)
def dense_pairs(stage: Stage) -> Iterator[None]:
    at = namespace(stage, "dense")
    body = b'[{"key":"a","value":"b","metadata":[' + b"1," * 500_000 + b"1]}]"
    keys = json.dumps([f"k{i}" for i in range(10_000)])
    yield
    at_once(3, stage.control, "POST", f"{at}/bulk", body)
    at_once(3, stage.control, "POST", f"{at}/bulk/delete", keys)


@attack("KV bulk of ninety megabytes", memory_mb=700)
def large_pairs(stage: Stage) -> Iterator[None]:
    at = namespace(stage, "large")
    body = json.dumps([{"key": f"k{i}", "value": "v" * 9_000} for i in range(9_900)])
    yield
    assert stage.control("POST", f"{at}/bulk", body).status == 200


@attack("KV export of ninety megabytes", memory_mb=700)
def export(stage: Stage) -> Iterator[None]:
    at = namespace(stage, "export")
    for first in range(0, 60_000, 10_000):
        pairs = [{"key": f"k{first + i}", "value": "v" * 1_000} for i in range(10_000)]
        assert stage.control("POST", f"{at}/bulk", json.dumps(pairs)).status == 200
    stage.ask("PUT", f"{at}/values/large", ("é" * (12 << 20)).encode(), {"Authorization": f"Bearer {stage.token}"})
    yield
    assert len(stage.control("GET", f"{at}/export").body) > 80 << 20


@attack("large values that nobody reads", memory_mb=256)
def unread_values(stage: Stage) -> Iterator[None]:
    at = namespace(stage, "unread")
    stage.ask("PUT", f"{at}/values/large", "x" * (24 << 20), {"Authorization": f"Bearer {stage.token}"})
    head = f"GET {at}/values/large HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {stage.token}\r\n\r\n"
    yield
    sockets = [stage.node.connect() for _ in range(30)]
    for connection in sockets:
        connection.sendall(head.encode())
    for connection in sockets:
        connection.recv(100)
        connection.close()


@attack("keys with as much metadata as there may be", memory_mb=96)
def metadata(stage: Stage) -> Iterator[None]:
    at = namespace(stage, "metadata")
    pairs = [{"key": f"{'k' * 500}{i}", "value": "", "metadata": [1] * 500} for i in range(2_000)]
    assert stage.control("POST", f"{at}/bulk", pairs).status == 200
    yield
    at_once(5, stage.control, "GET", f"{at}/keys")


@attack("messages as large as they may be, looked at", memory_mb=128)
def peek(stage: Stage) -> Iterator[None]:
    stage.control("POST", "/api/queues", {"name": "peeked"})
    message = {"body": [1] * 60_000}
    for _ in range(100):
        assert stage.control("POST", "/api/queues/peeked/messages", {"messages": [message]}).status == 201
    yield
    at_once(4, stage.control, "GET", "/api/queues/peeked/messages?limit=100")


@attack("a queue of many messages, purged and deleted")
def purge(stage: Stage) -> Iterator[None]:
    for name in ("purged", "deleted"):
        stage.control("POST", "/api/queues", {"name": name})
        body = json.dumps({"messages": [{"body": i} for i in range(100)]})
        for _ in range(150):
            assert stage.control("POST", f"/api/queues/{name}/messages", body).status == 201
    yield
    assert stage.control("POST", "/api/queues/purged/purge").json["purged"] >= 15_000
    assert stage.control("DELETE", "/api/queues/deleted").status == 204


@attack("messages of very many values", memory_mb=96)
def dense_messages(stage: Stage) -> Iterator[None]:
    stage.control("POST", "/api/queues", {"name": "dense"})
    bodies = [
        b'{"messages": [{"body": [' + unit * (900_000 // len(unit)) + b"1]}]}" for unit in (b"[],", b"{},", b"1,")
    ]
    small = b'{"messages": [{"body": [' + b"[]," * 40_000 + b"1]}]}"
    yield
    for body in bodies:
        assert stage.control("POST", "/api/queues/dense/messages", body).status == 400
    assert stage.control("POST", "/api/queues/dense/messages", small).status == 201
    at_once(3, stage.control, "GET", "/api/queues/dense/messages")


@attack("live streams and a tail worker of a worker that says thousands of lines", memory_mb=128)
def many_lines(stage: Stage) -> Iterator[None]:
    says = (
        "export default { fetch() { for (let i = 0; i < 4000; i++) console.log(''); return new Response('said'); } };"
    )
    stage.deploy("hears", "export default { fetch() {}, tail() {} };")
    stage.deploy("chatters", says, limits={"cpu_ms": 1000}, tail_consumers=[{"service": "hears"}])
    streams = [stage.node.connect() for _ in range(8)]
    for stream in streams:
        head = f"GET /api/workers/chatters/logs/live HTTP/1.1\r\nHost: localhost:{stage.node.port}\r\n"
        stream.sendall(f"{head}Authorization: Bearer {stage.token}\r\n\r\n".encode())
        assert b" 200 " in stream.recv(1000)
    yield
    for _ in range(30):
        assert stage.node.get("chatters").text == "said"
    for stream in streams:
        stream.recv(100_000)
        stream.close()
