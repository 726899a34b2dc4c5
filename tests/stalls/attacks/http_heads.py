"""Heads of requests, what stands before them, and requests that the front answers by itself."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

from tests.stalls.flood import connections, flood
from tests.stalls.stage import Stage, attack

MANY = 40  # connections
VERY_MANY = 250
HELLO = "export default { fetch() { return new Response('hello'); } };"


def pipeline(stage: Stage, data: bytes, count: int = 1, first: bytes = b"") -> Iterator[None]:
    with connections(stage.node.connect, count) as clients:
        yield
        flood(clients, data, first=first)


def get(host: str, *lines: str, method: str = "GET", target: str = "/") -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: {host}", *lines, "", ""]).encode()


def repeated(request: bytes, size: int = 1 << 20) -> bytes:
    return request * max(1, size // len(request))


@attack("empty lines before a request")
def empty_lines(stage: Stage) -> Iterator[None]:
    yield from pipeline(stage, b"\r\n" * 500_000)


@attack("empty lines after a request")
def empty_lines_after(stage: Stage) -> Iterator[None]:
    yield from pipeline(stage, b"\r\n" * 500_000, first=get(stage.node.host("quiet")))


@attack("some empty lines before each of many requests")
def empty_lines_between(stage: Stage) -> Iterator[None]:
    yield from pipeline(stage, repeated(b"\r\n\r\n" + get(stage.nobody)))


@attack("pipelined requests to an unknown host")
def unknown_host(stage: Stage) -> Iterator[None]:
    yield from pipeline(stage, repeated(get(stage.nobody)))


@attack("pipelined requests to an unknown host, on many connections")
def unknown_host_many(stage: Stage) -> Iterator[None]:
    yield from pipeline(stage, repeated(get(stage.nobody)), MANY)


@attack("pipelined requests for a page of an unknown host")
def unknown_host_pages(stage: Stage) -> Iterator[None]:
    yield from pipeline(stage, repeated(get(stage.nobody, "Accept: text/html")))


@attack("pipelined requests with bodies to an unknown host")
def unknown_host_bodies(stage: Stage) -> Iterator[None]:
    request = get(stage.nobody, "Content-Length: 1", method="POST") + b"x"
    yield from pipeline(stage, repeated(request))


@attack("pipelined requests to a worker")
def known_host(stage: Stage) -> Iterator[None]:
    host = stage.node.host(stage.deploy("hello", HELLO))
    yield from pipeline(stage, repeated(get(host)))


@attack("pipelined requests to a worker, on many connections")
def known_host_many(stage: Stage) -> Iterator[None]:
    host = stage.node.host(stage.deploy("hello", HELLO))
    yield from pipeline(stage, repeated(get(host)), MANY)


@attack("pipelined requests with bodies to a worker")
def known_host_bodies(stage: Stage) -> Iterator[None]:
    host = stage.node.host(stage.deploy("hello", HELLO))
    yield from pipeline(stage, repeated(get(host, "Content-Length: 1", method="POST") + b"x"))


@attack("pipelined requests to a worker that fails")
def failing_worker(stage: Stage) -> Iterator[None]:
    host = stage.node.host(stage.deploy("failing", "export default { fetch() { throw new Error('no'); } };"))
    yield from pipeline(stage, repeated(get(host, "Accept: text/html")))


@attack("pipelined heads of 100 KB")
def large_heads(stage: Stage) -> Iterator[None]:
    lines = [f"X-{i}: {'y' * 90}" for i in range(900)]
    yield from pipeline(stage, repeated(get(stage.nobody, *lines)))


@attack("pipelined heads of a thousand claims about the client")
def claims(stage: Stage) -> Iterator[None]:
    host = stage.node.host(stage.deploy("hello", HELLO))
    requests = [get(host, *["x-forwarded-for: 1"] * 990, f"x-n: {i}") for i in range(50)]
    yield from pipeline(stage, b"".join(requests))


@attack("heads that never end")
def endless_heads(stage: Stage) -> Iterator[None]:
    first = get(stage.node.host("quiet"))[:-2]
    yield from pipeline(stage, b"a:\r\n" * 100_000, MANY, first=first)


@attack("heads of one byte per packet")
def bytes_of_heads(stage: Stage) -> Iterator[None]:
    head = get(stage.nobody, f"X: {'y' * 3000}")
    with connections(stage.node.connect, MANY) as clients:
        for client in clients:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield
        end = time.monotonic() + 1.5
        for byte in head:
            if time.monotonic() > end:
                break
            for client in clients:
                client.sendall(bytes([byte]))


@attack("requests that are refused, on new connections")
def refusals(stage: Stage) -> Iterator[None]:
    yield
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        with connections(stage.node.connect, 20) as clients:
            flood(clients, repeated(b"GET / HTTP/9.9\r\nHost: x\r\n\r\n"), seconds=0.05)


@attack("bytes after a refusal")
def after_refusal(stage: Stage) -> Iterator[None]:
    yield from pipeline(stage, bytes(1 << 20), MANY, first=b"GET / HTTP/9.9\r\n\r\n")


@attack("pipelined requests to the control host")
def control_host(stage: Stage) -> Iterator[None]:
    yield from pipeline(stage, repeated(get(stage.node.control_host, target="/nothing")))


@attack("pipelined requests to the control host, on many connections")
def control_host_many(stage: Stage) -> Iterator[None]:
    yield from pipeline(stage, repeated(get(stage.node.control_host, target="/health")), MANY)


@attack("requests to the control host that are refused, on very many connections")
def control_host_refused(stage: Stage) -> Iterator[None]:
    request = get(stage.node.control_host, "Authorization: Bearer atoll_aaaaaaaaaaaa_x", target="/api/workers")
    yield from pipeline(stage, repeated(request, 1 << 16), VERY_MANY)


@attack("idle connections")
def idle(stage: Stage) -> Iterator[None]:
    with connections(stage.node.connect, 5_000):
        yield
        time.sleep(2)


@attack("pipelined OPTIONS of everything")
def options(stage: Stage) -> Iterator[None]:
    yield from pipeline(stage, repeated(get(stage.nobody, method="OPTIONS", target="*")))


@attack("pipelined requests for other protocols")
def upgrades(stage: Stage) -> Iterator[None]:
    yield from pipeline(stage, repeated(get(stage.nobody, "Connection: upgrade", "Upgrade: h2c")))


@attack("pipelined requests beyond the rate of the tenant")
def over_quota(stage: Stage) -> Iterator[None]:
    host = stage.node.host(stage.deploy("hello", HELLO))
    stage.operate("PATCH", "/api/tenants/mallory", {"quotas": {"requests_per_second": 1}})
    yield from pipeline(stage, repeated(get(host)))
    stage.operate("PATCH", "/api/tenants/mallory", {"quotas": {"requests_per_second": None}})
