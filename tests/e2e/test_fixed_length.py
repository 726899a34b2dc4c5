"""Streamed bodies of known length: the client receives the length, and a body of another length is broken off."""

from __future__ import annotations

import http.client
import socket

import pytest

from tests.running import Atoll

WORKER = """
export default {
  fetch(request, env, ctx) {
    const { searchParams } = new URL(request.url);
    const [said, sent] = ["said", "sent"].map((name) => Number(searchParams.get(name)));
    if (searchParams.has("plain")) return new Response("x".repeat(sent));
    const { readable, writable } = new FixedLengthStream(said);
    const write = async () => {
      const writer = writable.getWriter();
      for (let left = sent; left > 0; left -= 1000) await writer.write(new Uint8Array(Math.min(left, 1000)).fill(97));
      await writer.close();
    };
    ctx.waitUntil(write().catch(() => {}));
    return new Response(readable);
  },
};
"""


@pytest.fixture(scope="module")
def fixed(atoll: Atoll) -> str:
    atoll.deploy("fixed", WORKER)
    return "fixed"


@pytest.mark.parametrize("size", [0, 1, 2500, 300_000])
def test_a_fixed_length_stream_is_sent_with_its_length(atoll: Atoll, fixed: str, size: int) -> None:
    answer = atoll.get(fixed, f"/?said={size}&sent={size}")
    assert (answer.headers["content-length"], answer.headers["transfer-encoding"]) == (str(size), None)
    assert answer.body == b"a" * size


def test_a_large_text_is_sent_with_its_length(atoll: Atoll, fixed: str) -> None:
    answer = atoll.get(fixed, "/?plain&sent=500000")
    assert (answer.headers["content-length"], len(answer.body)) == ("500000", 500_000)


def test_head_has_the_length_and_the_connection_stays(atoll: Atoll, fixed: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", atoll.port, timeout=30)
    for method, length in (("HEAD", 0), ("GET", 5000)):
        connection.request(method, "/?said=5000&sent=5000", headers={"Host": atoll.host(fixed)})
        response = connection.getresponse()
        assert (response.headers["content-length"], len(response.read())) == ("5000", length)
    connection.close()


def test_head_has_the_length_from_the_worker_or_its_upstream(atoll: Atoll) -> None:
    script = """export default { fetch(request) {
        const { pathname, host } = new URL(request.url);
        if (pathname === "/said") return new Response(null, { headers: { "Content-Length": "1234" } });
        if (pathname === "/passed") return fetch(`http://${host}/said`, { method: request.method });
        return new Response(null);
    } }"""
    atoll.deploy("head-lengths", script)
    for path, length in (("/said", "1234"), ("/passed", "1234"), ("/unknown", None)):
        answer = atoll.request("HEAD", atoll.host("head-lengths"), path)
        assert (answer.status, answer.headers["content-length"]) == (200, length)
    assert atoll.get("head-lengths", "/said").headers["content-length"] == "0"


def test_an_old_client_keeps_its_connection(atoll: Atoll, fixed: str) -> None:
    with atoll.connect() as client:
        for _ in range(2):
            head = f"GET /?said=10&sent=10 HTTP/1.0\r\nHost: {atoll.host(fixed)}\r\nConnection: keep-alive\r\n\r\n"
            client.sendall(head.encode())
            data = b""
            while not data.endswith(b"a" * 10):
                piece = client.recv(65536)
                assert piece, data
                data += piece
            assert b"content-length: 10\r\n" in data and b"keep-alive" in data.lower()


@pytest.mark.parametrize("sent", [10, 4000])
def test_a_body_that_is_shorter_or_longer_is_broken_off(atoll: Atoll, fixed: str, sent: int) -> None:
    with pytest.raises((http.client.IncompleteRead, ConnectionError, socket.timeout)):
        atoll.get(fixed, f"/?said=2500&sent={sent}")
