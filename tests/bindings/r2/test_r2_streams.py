"""Large objects are never in memory as a whole, and fast senders wait for slow readers."""

from __future__ import annotations

import hashlib
import http.client
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.running import Atoll

MB = 1 << 20
SCRIPT = """
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (request.method === "PUT") return Response.json(await env.R2.put(pathname, request.body));
    const object = await env.R2.get(pathname);
    if (pathname !== "/read") return new Response(object.body);
    let size = 0;
    for await (const chunk of object.body) size += chunk.length;
    return Response.json(size);
  },
};
"""


def memory(pid: int) -> int:
    """The most that a process has used so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@pytest.fixture
def node(new_atoll: Callable[..., Atoll]) -> Atoll:
    made = new_atoll(engines=1, body_bytes=1 << 30)
    bindings = [{"type": "r2", "name": "R2", "bucket": "large"}]
    made.deploy("large", SCRIPT, bindings=bindings, limits={"cpu_ms": 20_000})
    made.deploy("frugal", SCRIPT, bindings=bindings, limits={"cpu_ms": 20})  # through JavaScript, 1 MB costs 0.65 ms
    return made


def test_an_object_larger_than_all_memory_limits_passes_through(node: Atoll) -> None:
    assert node.process is not None
    piece = bytes(range(256)) * 4096
    count = 200
    before = memory(node.process.pid)
    for path in ("/read", "/send"):
        connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=60)
        connection.request(
            "PUT", path, (piece for _ in range(count)),
            {"Host": node.host("frugal"), "Content-Length": str(count * MB)}, encode_chunked=False,
        )  # fmt: skip
        answer = connection.getresponse()
        assert answer.status == 200 and f'"size":{count * MB}'.encode() in answer.read()
        connection.close()
    assert node.get("large", "/read").json == count * MB
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=60)
    connection.request("GET", "/send", headers={"Host": node.host("frugal")})
    answer = connection.getresponse()
    assert answer.headers["content-length"] == str(count * MB)
    digest, expected = hashlib.md5(), hashlib.md5()
    while data := answer.read(MB):
        digest.update(data)
    for _ in range(count):
        expected.update(piece)
    connection.close()
    assert digest.digest() == expected.digest()
    assert memory(node.process.pid) - before < 100 * MB, "of 800 MB that passed through it"


def test_readers_that_do_not_read_hold_almost_nothing(node: Atoll) -> None:
    assert node.process is not None
    assert node.request("PUT", node.host("large"), "/slow", bytes(50 * MB)).status == 200
    before = memory(node.process.pid)
    readers = []
    for _ in range(20):
        reader = socket.create_connection(("127.0.0.1", node.port))
        reader.sendall(f"GET /slow HTTP/1.1\r\nHost: {node.host('large')}\r\n\r\n".encode())
        begun = b""
        while b"\r\n\r\n" not in begun:  # the first bytes of the body may come with the head
            begun += reader.recv(4096)
        assert begun.startswith(b"HTTP/1.1 200")
        readers.append(reader)
    for _ in range(3):  # the node has time for others, and what it would read ahead it has read by then
        assert node.get("large", "/").status == 500, "there is no such object"
    assert memory(node.process.pid) - before < 60 * MB, "of 1,000 MB that they asked for"
    last = readers.pop()
    for reader in readers:
        reader.close()
    received = len(begun.partition(b"\r\n\r\n")[2])
    while received < 50 * MB:
        data = last.recv(MB)
        assert data
        received += len(data)
    last.close()


WHOLE = """
const content = new Uint8Array(6 << 20).map((_, i) => (i * 7 + (i >> 8) * 13 + (i >> 16)) & 255);
const MB = 1 << 20;
const same = (bytes, offset, length) => {
  if (bytes.length !== length) return `${bytes.length} bytes instead of ${length}`;
  for (let i = 0; i < length; i++) if (bytes[i] !== content[offset + i]) return `byte ${i} is wrong`;
  return "same";
};
export default {
  async fetch(request, env) {
    const upload = await env.R2.createMultipartUpload("parts");
    const first = await upload.uploadPart(1, content.subarray(0, 5 * MB));
    await upload.complete([first, await upload.uploadPart(2, content.subarray(5 * MB))]);
    await env.R2.put("one", content);
    const seen = {};
    for (const key of ["one", "parts"]) {
      for (const [offset, length] of [
        [0, 1000], [3, 16 << 10], [0, (256 << 10) + 1], [5, MB], [1, 2 * MB], [1, 2 * MB + 1], [0, 6 * MB],
        [5 * MB - 1000, MB], [5 * MB - 500_000, MB], [5 * MB - MB, MB],
      ]) {
        const get = () => env.R2.get(key, { range: { offset, length } });
        const name = `${key} ${offset} ${length}`;
        seen[`${name} bytes`] = same(await (await get()).bytes(), offset, length);
        seen[`${name} blob`] = same(await (await (await get()).blob()).bytes(), offset, length);
        const reader = (await get()).body.getReader();
        const first = (await reader.read()).value;
        seen[`${name} stream`] = same(first, offset, first.length);
        await reader.cancel();
      }
    }
    return Response.json(seen);
  },
};
"""


def test_content_that_is_read_as_a_whole_is_that_of_every_range_and_part(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)
    bindings = [{"type": "r2", "name": "R2", "bucket": "whole"}]
    node.deploy("whole", WHOLE, bindings=bindings, limits={"cpu_ms": 20_000})
    seen = node.get("whole").json
    assert len(seen) == 60
    assert {name: said for name, said in seen.items() if said != "same"} == {}
