"""Bodies in both directions through a whole node: streaming, backpressure, disconnects."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import threading
import time

import pytest

from tests.running import Atoll

MB = 1 << 20
ECHO = "export default { fetch(request) { return new Response(request.body, { headers: { 'x-method': request.method } }); } }"


def test_an_upload_is_echoed_unchanged(atoll: Atoll) -> None:
    atoll.deploy("echo", ECHO)
    for size in (0, 1, 65536, 65537, 300_000, 5 * MB):
        body = os.urandom(size)
        reply = atoll.post("echo", body=body)
        assert reply.body == body, size


def test_a_chunked_upload_is_echoed_unchanged(atoll: Atoll) -> None:
    atoll.deploy("echo", ECHO)
    chunks = [os.urandom(n) for n in (1, 70_000, 3, 200_000)]
    reply = atoll.post("echo", body=iter(chunks))  # http.client sends an iterable chunked
    assert reply.body == b"".join(chunks)


def test_bodies_are_read_in_every_way(atoll: Atoll) -> None:
    script = """
        export default { async fetch(request) {
          switch (new URL(request.url).pathname) {
            case "/text": return new Response((await request.text()).length);
            case "/json": return Response.json((await request.json()).list.length);
            case "/bytes": return new Response((await request.arrayBuffer()).byteLength);
            case "/stream": { let n = 0; for await (const chunk of request.body) n += chunk.byteLength; return new Response(n); }
          }
        } };"""
    atoll.deploy("reader", script, limits={"cpu_ms": 5000})
    for size in (10, 100_000, 3 * MB):
        assert atoll.post("reader", "/text", b"x" * size).text == str(size)
        assert atoll.post("reader", "/bytes", b"x" * size).text == str(size)
        assert atoll.post("reader", "/stream", b"x" * size).text == str(size)
        assert atoll.post("reader", "/json", b'{"list":[%s]}' % b",".join([b"1"] * (size // 2))).text == str(size // 2)


def test_100_mb_pass_through_with_bounded_memory(atoll: Atoll) -> None:
    atoll.deploy("pipe", ECHO, limits={"cpu_ms": 20_000})
    atoll.post("pipe", body=b"warm")
    before = {pid: atoll.memory_mb(pid) for pid in [atoll.pid, *atoll.engines()]}
    block = os.urandom(MB)
    with atoll.connect() as client:

        def upload() -> None:
            head = f"POST / HTTP/1.1\r\nHost: {atoll.host('pipe')}\r\nContent-Length: {100 * MB}\r\n\r\n"
            client.sendall(head.encode())
            for _ in range(100):
                client.sendall(block)

        uploader = threading.Thread(target=upload)
        uploader.start()
        response = http.client.HTTPResponse(client, method="POST")
        response.begin()
        received, most = hashlib.sha256(), 0.0
        while data := response.read(MB):
            received.update(data)
            most = max(most, *(atoll.memory_mb(pid) - memory for pid, memory in before.items()))
        uploader.join()
        response.close()
    assert received.digest() == hashlib.sha256(block * 100).digest()
    assert most < 80, f"a process grew by {most} MB"


def test_a_client_that_disconnects_during_an_echo_cancels_the_call(atoll: Atoll) -> None:
    script = """
        let aborted = "no";
        export default { fetch(request) {
          if (request.url.endsWith("/state")) return new Response(aborted);
          request.signal.addEventListener("abort", () => { aborted = "yes"; });
          return new Response(request.body);
        } };"""
    atoll.deploy("echo-leaver", script)
    with atoll.connect() as client:
        head = f"POST / HTTP/1.1\r\nHost: {atoll.host('echo-leaver')}\r\nContent-Length: {8 * MB}\r\n\r\n"
        client.sendall(head.encode() + bytes(MB))
        response = http.client.HTTPResponse(client, method="POST")
        response.begin()
        assert response.read(MB) == bytes(MB)
        assert atoll.logs("echo-leaver") == []  # the call still runs
        response.close()
    atoll.wait_until(lambda: atoll.get("echo-leaver", "/state").text == "yes")
    assert "canceled" in [record["outcome"] for record in atoll.logs("echo-leaver")]


def test_a_client_that_does_not_read_the_echo_cannot_keep_sending(atoll: Atoll) -> None:
    atoll.deploy("echo", ECHO)
    before = atoll.memory_mb()
    sent = 0
    with atoll.connect(timeout=1) as client:
        client.sendall(f"POST / HTTP/1.1\r\nHost: {atoll.host('echo')}\r\nContent-Length: {100 * MB}\r\n\r\n".encode())
        with pytest.raises(TimeoutError):
            while sent < 100 * MB:
                sent += client.send(bytes(65536))
        assert atoll.memory_mb() - before < 20
    assert sent < 40 * MB  # the kernel's buffers at both ends, and a window
    assert atoll.post("echo", body=b"again").body == b"again"


def test_a_slow_reader_never_grows_memory(atoll: Atoll) -> None:
    script = """
        export default { fetch() {
          let n = 0;
          return new Response(new ReadableStream({
            pull(controller) { n++ < 1600 ? controller.enqueue(new Uint8Array(65536)) : controller.close(); },
          }));
        } };"""
    atoll.deploy("firehose", script, limits={"cpu_ms": 20_000})
    before = {pid: atoll.memory_mb(pid) for pid in [atoll.pid, *atoll.engines()]}
    client = atoll.connect()
    client.sendall(f"GET / HTTP/1.1\r\nHost: {atoll.host('firehose')}\r\nConnection: close\r\n\r\n".encode())
    time.sleep(1)  # no data is read: everything must stop
    for pid, memory in before.items():
        assert atoll.memory_mb(pid) - memory < 40
    response = http.client.HTTPResponse(client)
    response.begin()
    size = 0
    while data := response.read(MB):
        size += len(data)
    client.close()
    assert size == 1600 * 65536


def test_a_client_that_disconnects_cancels_the_call(atoll: Atoll) -> None:
    script = """
        let aborted = "no";
        export default { async fetch(request) {
          if (request.url.endsWith("/state")) return new Response(aborted);
          request.signal.addEventListener("abort", () => { aborted = "yes"; });
          aborted = "not yet";
          await new Promise((resolve) => setTimeout(resolve, 20_000));
          return new Response("late");
        } };"""
    atoll.deploy("leaver", script)
    client = atoll.connect()
    client.sendall(f"GET / HTTP/1.1\r\nHost: {atoll.host('leaver')}\r\n\r\n".encode())
    atoll.wait_until(lambda: atoll.get("leaver", "/state").text == "not yet")
    client.close()
    atoll.wait_until(lambda: atoll.get("leaver", "/state").text == "yes")
    assert "canceled" in [record["outcome"] for record in atoll.logs("leaver")]


def test_a_broken_stream_breaks_the_response_visibly(atoll: Atoll) -> None:
    script = """
        export default { fetch() {
          let n = 0;
          return new Response(new ReadableStream({
            async pull(controller) {
              if (n++ === 3) throw new Error("no more");
              controller.enqueue(new TextEncoder().encode("part"));
            },
          }));
        } };"""
    atoll.deploy("breaks", script)
    client = atoll.connect()
    client.sendall(f"GET / HTTP/1.1\r\nHost: {atoll.host('breaks')}\r\n\r\n".encode())
    raw = b""
    while data := client.recv(65536):
        raw += data
    client.close()
    assert raw.count(b"part") == 3 and not raw.endswith(b"0\r\n\r\n"), "the client can see that the body is incomplete"
    assert atoll.logs("breaks")[0]["exception"]["message"] == "no more"


@pytest.mark.parametrize("chunk", ["null", "undefined", "7", "{ then() {} }", "new Blob()"])
def test_a_stream_of_values_other_than_bytes_breaks_instead_of_ending(atoll: Atoll, chunk: str) -> None:
    """Inside the engine null means the end, and an object with a `then` would be awaited."""
    atoll.deploy(
        "odd-chunks",
        """export default { fetch() {
          const chunks = [new ArrayBuffer(3), new DataView(new ArrayBuffer(3)), "é", CHUNK, new Uint8Array(3)];
          const pull = (controller) => (chunks.length > 0 ? controller.enqueue(chunks.shift()) : controller.close());
          return new Response(new ReadableStream({ pull, cancel: (reason) => console.log(`canceled: ${reason}`) }));
        } };""".replace("CHUNK", chunk),
    )
    with pytest.raises(http.client.IncompleteRead) as cut:
        atoll.get("odd-chunks")
    assert cut.value.partial == bytes(6) + "é".encode()
    record = atoll.logs("odd-chunks")[0]
    message = record["exception"]["message"]
    assert "did not return bytes" in message
    assert record["exception"]["type"] == "TypeError"
    assert record["logs"][0]["message"] == f"canceled: TypeError: {message}"


def test_a_stream_that_never_ends_is_detected(atoll: Atoll) -> None:
    script = "export default { fetch() { return new Response(new ReadableStream({ pull() { return new Promise(() => {}); } })); } }"
    atoll.deploy("stalls", script)
    started = time.monotonic()
    client = atoll.connect()
    client.sendall(f"GET / HTTP/1.1\r\nHost: {atoll.host('stalls')}\r\n\r\n".encode())
    while client.recv(65536):
        pass
    client.close()
    assert time.monotonic() - started < 10, "the call does not wait for the limit of 30 s"
    assert "never end" in atoll.logs("stalls")[0]["exception"]["message"]


def test_a_client_that_disconnects_from_an_echo_leaves_no_call(atoll: Atoll) -> None:
    atoll.deploy("half-echo", ECHO)
    client = atoll.connect()
    client.sendall(f"POST / HTTP/1.1\r\nHost: {atoll.host('half-echo')}\r\nContent-Length: {50 * MB}\r\n\r\n".encode())
    client.sendall(bytes(3 * MB))  # more than both windows hold; the client does not read the response
    client.close()
    atoll.wait_until(lambda: "canceled" in [record["outcome"] for record in atoll.logs("half-echo")])
    assert atoll.post("half-echo", body=b"again").body == b"again"


def test_an_echo_runs_at_the_pace_of_its_reader(atoll: Atoll) -> None:
    atoll.deploy("slow-echo", ECHO)
    data = os.urandom(4 * MB)
    with atoll.connect() as client:
        head = f"POST / HTTP/1.1\r\nHost: {atoll.host('slow-echo')}\r\nContent-Length: {len(data)}\r\n\r\n"
        sender = threading.Thread(target=lambda: client.sendall(head.encode() + data))
        sender.start()
        time.sleep(0.3)  # the windows fill and everything stops
        response = http.client.HTTPResponse(client, method="POST")
        response.begin()
        assert response.read() == data
        sender.join()
        response.close()


def test_a_body_is_compressed_for_a_worker_that_names_the_encoding(atoll: Atoll) -> None:
    script = """
        export default { async fetch(request) {
          const headers = { "content-encoding": "gzip" };
          if (request.url.endsWith("/automatic")) return new Response("some text", { headers });
          const zipped = new Blob(["some text"]).stream().pipeThrough(new CompressionStream("gzip"));
          return new Response(zipped, { headers, encodeBody: "manual" });
        } };"""
    atoll.deploy("zipped", script)
    for path in ("/automatic", "/manual"):
        reply = atoll.get("zipped", path, headers={"Accept-Encoding": "gzip"})
        assert reply.headers["content-encoding"] == "gzip"
        assert gzip.decompress(reply.body) == b"some text"


def test_a_form_with_a_file_arrives(atoll: Atoll) -> None:
    script = """
        export default { async fetch(request) {
          const form = await request.formData();
          const file = form.get("file");
          return Response.json([form.get("a"), file.name, file.type, file.size]);
        } };"""
    atoll.deploy("form", script)
    body = (
        b'--XX\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--XX\r\n'
        b'Content-Disposition: form-data; name="file"; filename="f.bin"\r\nContent-Type: a/b\r\n\r\n'
        + bytes(300_000) + b"\r\n--XX--\r\n"
    )  # fmt: skip
    reply = atoll.post("form", body=body, headers={"Content-Type": "multipart/form-data; boundary=XX"})
    assert reply.json == ["1", "f.bin", "a/b", 300_000]


def test_a_zip_bomb_that_a_worker_collects_costs_only_that_worker(atoll: Atoll) -> None:
    script = """
        export default { async fetch(request) {
          if (request.url.endsWith("/ok")) return new Response("ok");
          const body = request.body.pipeThrough(new DecompressionStream("gzip"));
          const { byteLength } = await new Response(body).arrayBuffer();
          return new Response(String(byteLength));
        } };"""
    atoll.deploy("unzips", script, limits={"cpu_ms": 20_000})
    small = gzip.compress(b"x" * 100_000)
    assert atoll.post("unzips", body=small).text == "100000"
    bomb = gzip.compress(bytes(300 * MB), 9)
    assert len(bomb) < MB
    reply = atoll.post("unzips", body=bomb, headers={"Accept": "application/json"})
    assert reply.status in (500, 503), reply.text[:200]
    record = atoll.logs("unzips")[0]
    assert record["outcome"] in ("exceededMemory", "exception"), record
    assert atoll.get("unzips", "/ok").text == "ok"
