"""`atoll bench` against a real node and against servers that misbehave."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from atoll.cli.bench_load import Durations
from tests.cli.dev_session import ATOLL, environment
from tests.running import Atoll, free_port

WORKER = """export default { async fetch(request) {
  if (request.url.endsWith("/fail")) return new Response("no", { status: 500 });
  if (request.url.endsWith("/stream")) return new Response(new Blob(["a".repeat(50000)]).stream());
  return new Response(`${request.method} ${request.headers.get("x-a")} ${await request.text()}`);
} }"""


def bench(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(
        [ATOLL, "bench", *words], env=environment(folder), capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    return ran


def measured(folder: Path, *words: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bench(folder, *words, "--json", code=code).stdout)
    return found


@contextmanager
def server(*answers: bytes) -> Iterator[int]:
    """Answers each connection's request with the next bytes, then closes it; at the end it repeats the last."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        left = list(answers)

        def serve() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                with client:
                    answer = left.pop(0) if len(left) > 1 else left[0]
                    if client.recv(65536) and answer:
                        client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_a_number_of_requests_is_sent_and_measured(atoll: Atoll, tmp_path: Path) -> None:
    atoll.deploy("benched", WORKER)
    url = f"http://benched.localhost:{atoll.port}/"
    found = measured(tmp_path, url, "--requests", "200", "--connections", "4")
    assert found["responses"] == 200 and found["statuses"] == {"200": 200} and found["errors"] == {}
    assert 0 < found["ms"]["min"] <= found["ms"]["p50"] <= found["ms"]["p99"] <= found["ms"]["max"]
    assert sum(each["count"] for each in found["histogram"]) == 200
    assert found["responses_per_second"] > 0 and 0 < found["client_cpu"] <= 2
    streamed = measured(tmp_path, f"{url}stream", "--requests", "5", "--connections", "1")
    assert streamed["responses"] == 5 and streamed["bytes_received"] > 250_000
    failed = measured(tmp_path, f"{url}fail", "--requests", "5", "--connections", "2")
    assert failed["statuses"] == {"500": 5}


def test_method_headers_and_body_are_sent(atoll: Atoll, tmp_path: Path) -> None:
    atoll.deploy("benched", WORKER)
    (tmp_path / "body").write_bytes(b"x" * 1000)
    words = ["--method", "POST", "-H", "x-a: b", "--data", f"@{tmp_path / 'body'}", "--requests", "3"]
    found = measured(tmp_path, f"http://benched.localhost:{atoll.port}/", *words, "--connections", "1")
    assert found["responses"] == 3 and found["bytes_received"] > 3 * 1007
    head = measured(tmp_path, f"http://benched.localhost:{atoll.port}/", "--method", "HEAD", "--requests", "3")
    assert head["responses"] == 3


def test_the_time_is_bounded_and_people_get_a_histogram(atoll: Atoll, tmp_path: Path) -> None:
    atoll.deploy("benched", WORKER)
    ran = bench(tmp_path, f"http://benched.localhost:{atoll.port}/", "--seconds", "0.5", "--connections", "2")
    assert "responses/s" in ran.stdout and "status 200" in ran.stdout and " ms  ##" in ran.stdout
    assert "p50 " in ran.stdout and "p99.9 " in ran.stdout and "2 connections to http://benched" in ran.stderr


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", "closed before the answer"),
        (b"nonsense\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort", "closed before the answer"),
    ],
)
def test_errors_are_counted_by_kind(answer: bytes, kind: str, tmp_path: Path) -> None:
    with server(answer) as port:
        ran = bench(tmp_path, f"http://127.0.0.1:{port}/", "--requests", "4", "--connections", "2", "--json", code=1)
    found = json.loads(ran.stdout)
    assert found["errors"] == {kind: 4} and found["responses"] == 0 and found["ms"] == {}
    assert json.loads(ran.stderr)["error"]["message"] == f"nothing was answered: {kind}"


def test_a_body_that_ends_with_its_connection_is_whole(tmp_path: Path) -> None:
    with server(
        b"HTTP/1.0 200 OK\r\n\r\nthe rest", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"
    ) as port:
        found = measured(tmp_path, f"http://127.0.0.1:{port}/", "--requests", "2", "--connections", "1")
    assert found["statuses"] == {"200": 1, "204": 1} and found["errors"] == {}


def test_a_server_that_is_not_there_or_silent_ends_the_run(tmp_path: Path) -> None:
    ran = bench(tmp_path, f"http://127.0.0.1:{free_port()}/", "--requests", "3", "--connections", "3", code=1)
    assert "nothing was answered: connection refused" in ran.stderr and "hint: check that the server runs" in ran.stderr
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        ran = bench(tmp_path, url, "--requests", "1", "--connections", "1", "--timeout", "0.2", "--json", code=1)
    assert json.loads(ran.stdout)["errors"] == {"no answer in time": 1}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["http://93.184.216.34/"], "is 93.184.216.34, a public address"),
        (["http://[2606:4700::1]/"], "a public address"),
        (["ftp://localhost/"], "is not an http or https URL"),
        (["http://localhost:99999/"], "is not a URL"),
        (["http://no-such-host.invalid/"], "has no address"),
        (["http://localhost/", "-H", "a b: c"], "is not NAME:VALUE"),
        (["http://localhost/", "-H", "a: b\r\nc: d"], "is not NAME:VALUE"),
        (["http://localhost/", "-H", "Host: other"], "is written by the command"),
        (["http://localhost/\r\nx", "--method", "GET"], "is not an http or https URL"),
        (["http://localhost/", "--method", "G T"], "is not a method"),
        (["http://localhost/", "--data", "@/no/such/file"], "No such file or directory"),
    ],
)
def test_what_cannot_or_must_not_be_loaded_is_refused(words: list[str], said: str, tmp_path: Path) -> None:
    ran = bench(tmp_path, *words, code=1)
    assert said in ran.stderr and "hint: " in ran.stderr


def test_quantiles_are_exact_within_two_percent() -> None:
    durations = Durations()
    for us in range(1, 10_001):
        durations.add(us)
    for share in (0.5, 0.9, 0.99, 0.999):
        assert share * 10 <= durations.quantile(share) <= share * 10 * 1.03
    assert durations.quantile(1.0) == durations.most / 1000 == 10.0
    assert sum(count for _, count in durations.bars()) == 10_000
