"""What is held of the bodies of one tenant is bounded, and each of its connections gets on all the same."""

from __future__ import annotations

import contextlib
import hashlib
import selectors
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from tests.running import Atoll
from tests.stalls.attacks.http_heads import get
from tests.stalls.flood import READ, connections
from tests.stalls.stage import BUSY_WAIT_MS, Stage, Stall, Watching

ROUNDS = 3  # as in test_stalls.py
CONNECTIONS = 300
SIZE = 600_000
LIMITS = {"cpu_ms": 30_000}
ECHO = "export default { fetch(request) { return new Response(request.body); } };"
GIVER = """export default { fetch() {
  const piece = new Uint8Array(65_536);
  return new Response(new ReadableStream({ pull(controller) { controller.enqueue(piece); } }));
} };"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("transit"), tenant_buffer_mb=1)
    yield stage
    stage.close()


def body_of(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest() * (SIZE // 32)


def exchange(clients: list[socket.socket], host: str) -> list[bytes]:
    """Send a body of its own on each connection, all at once, and return what comes back."""
    selector = selectors.DefaultSelector()
    left, answers = {}, {client: bytearray() for client in clients}
    for number, client in enumerate(clients):
        body = body_of(number)
        left[client] = memoryview(get(host, f"Content-Length: {len(body)}", "Connection: close", method="POST") + body)
        client.setblocking(False)
        selector.register(client, selectors.EVENT_READ | selectors.EVENT_WRITE)
    end = time.monotonic() + 120
    while selector.get_map():
        assert time.monotonic() < end, "some uploads did not get on"
        for key, events in selector.select(1):
            client = key.fileobj
            assert isinstance(client, socket.socket)
            with contextlib.suppress(BlockingIOError):
                if events & selectors.EVENT_WRITE:
                    left[client] = left[client][client.send(left[client][:READ]) :]
                    if not left[client]:
                        selector.modify(client, selectors.EVENT_READ)
                if events & selectors.EVENT_READ:
                    data = client.recv(READ)
                    answers[client] += data
                    if not data:
                        selector.unregister(client)
    selector.close()
    return [bytes(answer) for answer in answers.values()]


def dechunked(answer: bytes) -> bytes:
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    body = bytearray()
    while True:
        size, _, rest = rest.partition(b"\r\n")
        if size == b"0":
            return bytes(body)
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]


def test_a_crowd_of_uploads_ends_with_all_its_bytes_and_nobody_else_waits(stage: Stage) -> None:
    """The tenant has 1 MB for all, so that nearly every connection has a small window."""
    host = stage.node.host(stage.deploy("echo", ECHO, limits=LIMITS))

    def once() -> Stall:
        with connections(stage.node.connect, CONNECTIONS) as clients, Watching(stage.node) as watching:
            answers = exchange(clients, host)
            stall = watching.end()
        for number, answer in enumerate(answers):
            assert dechunked(answer) == body_of(number), number
        return stall

    stall = once()
    assert stall.memory_mb <= 60
    for _ in range(ROUNDS - 1):
        if stall.wait_ms <= BUSY_WAIT_MS:
            return
        stall = once()
    assert stall.wait_ms <= BUSY_WAIT_MS


def test_clients_that_do_not_read_are_cut_before_they_hold_too_much_and_others_are_served(stage: Stage) -> None:
    host = stage.node.host(stage.deploy("giver", GIVER, limits=LIMITS))

    def connect() -> socket.socket:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # so that little waits in the kernel
        client.settimeout(30)
        client.connect(("127.0.0.1", stage.node.port))
        return client

    with connections(connect, CONNECTIONS) as clients, Watching(stage.node) as watching:
        for client in clients:
            client.sendall(get(host))
        stage.node.wait_until(lambda: "bytes of responses unread" in stage.node.log(), 60)
        assert stage.node.get(stage.deploy("echo", ECHO, limits=LIMITS)).status == 200
        stall = watching.end()
    assert stall.memory_mb <= 60


FLOOD = """export default { fetch() {
  let left = 64;
  return new Response(new ReadableStream({ pull(controller) {
    if (left-- > 0) controller.enqueue(new Uint8Array(65536).fill(left)); else controller.close();
  } }));
} };"""
HOARDER = """export default { async fetch(request, env) {
  const count = Number(new URL(request.url).searchParams.get("count"));
  const responses = await Promise.all(Array.from({ length: count }, () => env.FLOOD.fetch("http://flood/")));
  await scheduler.wait(300);
  const read = await Promise.allSettled(responses.map(async (response) => (await response.arrayBuffer()).byteLength));
  return Response.json({
    whole: read.filter((each) => each.value === 64 * 65536).length,
    refused: read.filter((each) => `${each.reason}`.includes("wait to be read")).length,
  });
} };"""


def test_unread_answers_of_other_workers_are_bounded_per_tenant(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1, tenant_buffer_mb=1)
    atoll.deploy("flood", FLOOD, limits={"cpu_ms": 10_000})
    bindings = [{"type": "service", "name": "FLOOD", "service": "flood"}]
    atoll.deploy("hoarder", HOARDER, bindings=bindings, limits={"cpu_ms": 10_000, "memory_mb": 512})
    for _ in range(2):  # bytes of refused answers are given back
        found = atoll.get("hoarder", "/?count=60").json
        assert found["refused"] > 0 and found["whole"] >= 4, found
        assert found["refused"] + found["whole"] == 60
    assert atoll.get("hoarder", "/?count=4").json == {"whole": 4, "refused": 0}
