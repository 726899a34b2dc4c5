"""Bodies that a worker does not read pass between the client and the store without the engine, in both directions."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import socket
from collections.abc import Iterator

import pytest

from tests.running import Atoll

MB = 1 << 20
DATA = b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(12 * MB // 32 + 1))  # no two parts are alike
SCRIPT = """
let failed = "";
export default {
  async fetch(request, env, ctx) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/failed") return new Response(failed);
    if (pathname === "/parts") {
      const upload = await env.R2.createMultipartUpload("parts");
      const data = await request.bytes();
      const parts = [];
      const size = 5 << 20;
      for (const n of [0, 1]) parts.push(await upload.uploadPart(n + 1, data.subarray(n * size, (n + 1) * size)));
      return Response.json(await upload.complete(parts));
    }
    if (request.method === "PUT") {
      try {
        const sha256 = searchParams.get("sha256") ?? undefined;
        if (searchParams.has("late")) await env.R2.head("x"); // some of the body is here by then
        const stored = env.R2.put(pathname, request.body, { sha256 });
        ctx.waitUntil(stored.catch((error) => { failed = `${error}`; })); // goes on when the client is gone
        return Response.json(await stored);
      } catch (error) {
        return new Response(`${error}`, { status: 400 });
      }
    }
    const object = await env.R2.get(pathname === "/of-parts" ? "parts" : pathname, { range: request.headers });
    return object === null ? new Response(null, { status: 404 }) : new Response(object.body);
  },
};
"""
FORWARD = """
export default {
  fetch(request, env) { return env.STORE.fetch(request); },
};
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    made = Atoll(tmp_path_factory.mktemp("direct"), engines=1, body_bytes=1 << 30)
    made.start()
    made.deploy("store", SCRIPT, bindings=[{"type": "r2", "name": "R2", "bucket": "direct"}])
    service = {"type": "service", "name": "STORE", "service": "store"}
    made.deploy("forward", FORWARD, bindings=[service], limits={"cpu_ms": 5_000})  # it passes bodies on in JavaScript
    yield made
    assert made.stop() == 0


def descriptors(node: Atoll) -> int:
    assert node.process is not None
    return len(os.listdir(f"/proc/{node.process.pid}/fd"))


def calls_in_flight(node: Atoll) -> int:
    return max(map(int, re.findall(r'"in_flight":(\d+)', node.control("GET", "/admin/pool").text)))


@pytest.mark.parametrize("size", [256 << 10, (256 << 10) + 1, MB, 12 * MB])
@pytest.mark.parametrize("worker", ["store", "forward"])
def test_an_upload_that_is_not_read_is_stored_whole(node: Atoll, worker: str, size: int) -> None:
    data = DATA[:size]
    for path in (f"/{worker}-{size}", f"/{worker}-{size}?late"):
        answer = node.request("PUT", node.host(worker), path, data)
        assert answer.status == 200, answer.body
        assert answer.json["etag"] == hashlib.md5(data).hexdigest()
        assert node.get(worker, path).body == data


def test_a_range_over_the_border_of_two_files_is_sent(node: Atoll) -> None:
    data = DATA[: 10 * MB]
    assert node.request("PUT", node.host("store"), "/parts", data).json["size"] == len(data)
    assert node.get("store", "/of-parts").body == data
    start, end = 5 * MB - 300_000, 5 * MB + 300_000
    answer = node.request("GET", node.host("store"), "/of-parts", headers={"Range": f"bytes={start}-{end - 1}"})
    assert answer.body == data[start:end]


def test_a_refused_upload_is_answered_and_the_connection_stays(node: Atoll) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=30)
    headers = {"Host": node.host("store")}
    connection.request("PUT", f"/refused?sha256={'0' * 64}", DATA[: 4 * MB], headers)
    answer = connection.getresponse()
    assert (answer.status, b"(10037)" in answer.read()) == (400, True)
    connection.request("GET", "/refused", headers=headers)
    assert connection.getresponse().status == 404
    connection.close()


def test_an_upload_whose_client_leaves_is_not_stored_and_the_worker_is_told(node: Atoll) -> None:
    with socket.create_connection(("127.0.0.1", node.port)) as client:
        head = f"PUT /cut HTTP/1.1\r\nHost: {node.host('store')}\r\nContent-Length: {8 * MB}\r\n\r\n"
        client.sendall(head.encode() + DATA[: 3 * MB])
    node.wait_until(lambda: b"disconnected" in node.get("store", "/failed").body, 20)
    assert node.get("store", "/cut").status == 404
    unfinished = node.folder / "data" / "r2" / "r2-unfinished"
    node.wait_until(lambda: not list(unfinished.iterdir()), 20)


def test_a_client_that_leaves_during_a_download_costs_nothing(node: Atoll) -> None:
    assert node.request("PUT", node.host("store"), "/left", DATA).status == 200
    assert node.get("store", "/left").body == DATA
    before = descriptors(node)
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", node.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            client.sendall(f"GET /left HTTP/1.1\r\nHost: {node.host('store')}\r\n\r\n".encode())
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
    node.wait_until(lambda: descriptors(node) <= before, 20)
    node.wait_until(lambda: calls_in_flight(node) == 0, 20)
    assert node.get("store", "/left").body == DATA
