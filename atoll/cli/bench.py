"""`atoll bench`: how many requests a URL answers, and how fast: for sizing a node."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
import uvloop

from atoll import __version__
from atoll.cli.dial import LOOPBACK, is_local_name
from atoll.cli.options import json_option
from atoll.cli.talk import echo, fail, paint, say, show_json

if TYPE_CHECKING:
    from atoll.cli.bench_load import Aim, LoadResult

SHARES = (0.5, 0.9, 0.99, 0.999)
BAR = 40
BUSY = 0.9  # of a core; above it the client may be what is slow
WRITTEN = ("host", "content-length", "connection", "transfer-encoding")  # headers that the command writes itself


@click.command()
@click.argument("url")
@click.option(
    "--connections", type=click.IntRange(1, 10_000), default=32, show_default=True, help="Connections at once."
)
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=10.0, show_default=True, help="Longest time.")
@click.option("--requests", type=click.IntRange(1), help="Stop after this number of requests.")
@click.option("--method", default="GET", show_default=True, help="Method of the requests.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME:VALUE", help="Send a header. Repeatable.")
@click.option("--data", default="", metavar="TEXT", help="Body of the requests; `@file` is the content of a file.")
@click.option(
    "--timeout", type=click.FloatRange(0.1), default=10.0, show_default=True, help="Longest wait for a response."
)
@click.option("--allow-public", is_flag=True, help="Send load to a public address. Only do so with your own servers.")
@json_option
def bench(
    url: str,
    connections: int,
    seconds: float,
    requests: int | None,
    method: str,
    headers: tuple[str, ...],
    data: str,
    timeout: float,
    allow_public: bool,
    as_json: bool,
) -> None:
    """Send requests to URL as fast as it answers them, and show rates, durations and errors.

    Each connection waits for a response before it sends the next request. The load needs a core of its own, so run it
    on another machine to measure the limits of a node. Exit code 1: nothing was answered.

    \b
    Examples:
      atoll bench http://hello.localhost:8080/
      atoll bench http://hello.localhost:8080/ --connections 100 --seconds 30
      atoll bench http://hello.localhost:8080/ --requests 1000 --method POST --data '{"a":1}'
    """
    from atoll.cli.bench_load import Load, LoadBounds

    aim = aim_at(url, method, headers, data, allow_public=allow_public)
    bounds = LoadBounds(connections, seconds, requests or 0, timeout)
    if not as_json:
        say(f"{connections} connections to {url}, for up to {seconds:g} s")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(Load(aim, bounds).run())
    if as_json:
        show_json(facts_of(result))
    else:
        show(result)
    if not result.answered:
        kinds = ", ".join(result.errors) or "no answer came in time"
        fail(f"nothing was answered: {kinds}", "check that the server runs: `curl -v` shows what it says")


def aim_at(url: str, method: str, headers: tuple[str, ...], data: str, *, allow_public: bool) -> Aim:
    """Where the load goes, and the bytes of its requests. Raises Failed."""
    from atoll.cli.bench_load import Aim

    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        fail(f"{url} is not a URL: {error}", "such as http://hello.localhost:8080/")
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii() or any(c <= " " for c in url):
        fail(f"{url} is not an http or https URL", "such as http://hello.localhost:8080/; other characters as %20")
    if not (method.isascii() and method.isalpha()):
        fail(f"{method} is not a method", "such as GET or POST")
    address = address_of(parts.hostname, port)
    if not allow_public and ipaddress.ip_address(address.partition("%")[0]).is_global:
        fail(
            f"{parts.hostname} is {address}, a public address",
            "load harms servers of others; for your own, add --allow-public",
        )
    body = body_of(data)
    lines = [f"{method.upper()} {parts.path or '/'}{'?' + parts.query if parts.query else ''} HTTP/1.1"]
    lines.append(f"host: {parts.netloc.rpartition('@')[2]}")
    for header in headers:
        name, found, value = header.partition(":")
        if not found or not name.strip() or any(ord(c) < 32 or ord(c) > 126 for c in header) or " " in name.strip():
            fail(f"--header {header!r} is not NAME:VALUE", "write it like -H 'accept: text/html'")
        if name.strip().lower() in WRITTEN:
            fail(f"--header {name.strip()} is written by the command", "leave it out; the host comes from the URL")
        lines.append(f"{name.strip()}: {value.strip()}")
    if not any(line.lower().startswith("user-agent:") for line in lines):
        lines.append(f"user-agent: atoll-bench/{__version__}")
    if body or method.upper() in ("POST", "PUT", "PATCH"):
        lines.append(f"content-length: {len(body)}")
    request = "\r\n".join([*lines, "", ""]).encode() + body
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    return Aim(address, port, tls, parts.hostname, request, method.upper() == "HEAD")


def address_of(host: str, port: int) -> str:
    """One address of a host. Names under localhost always lead to this machine. All load goes to that address."""
    if is_local_name(host):
        for address in LOOPBACK:
            try:
                socket.create_connection((address, port), 2).close()
            except OSError:
                continue
            return address
        return LOOPBACK[0]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        fail(f"{host} has no address: {error.strerror or error}", "check the URL")
    return str(found[0][4][0])


def body_of(data: str) -> bytes:
    if not data.startswith("@"):
        return data.encode()
    try:
        with open(data[1:], "rb") as file:
            return file.read()
    except OSError as error:
        fail(f"--data {data}: {error.strerror or error}", "name a file that exists, or write the text itself")


def facts_of(result: LoadResult) -> dict[str, object]:
    durations, seconds = result.durations, result.seconds
    return {
        "seconds": round(seconds, 3),
        "responses": result.answered,
        "responses_per_second": round(result.answered / seconds, 1) if seconds else 0.0,
        "bytes_received": result.received,
        "statuses": {str(status): count for status, count in sorted(result.statuses.items())},
        "errors": dict(result.errors),
        "ms": {
            "min": round(durations.least / 1000, 3),
            "mean": round(durations.total / durations.count / 1000, 3),
            **{f"p{share * 100:g}": round(durations.quantile(share), 3) for share in SHARES},
            "max": round(durations.most / 1000, 3),
        }
        if durations.count
        else {},
        "histogram": [
            {"up_to_ms": None if bound == float("inf") else bound, "count": count} for bound, count in durations.bars()
        ],
        "client_cpu": round(result.cpu_seconds / seconds, 3) if seconds else 0.0,
    }


def show(result: LoadResult) -> None:
    durations, seconds = result.durations, result.seconds
    speed = result.answered / seconds
    echo(f"{paint(f'{speed:,.0f} responses/s', bold=True)}  {result.answered:,} in {seconds:.1f} s")
    echo(f"{result.received / seconds / 1e6:,.2f} MB/s received")
    for status, count in sorted(result.statuses.items()):
        echo(f"status {status}  {count:,}")
    for kind, count in result.errors.most_common():
        echo(f"{paint('error', fg='red')}  {kind}  {count:,}")
    if durations.count:
        parts = [f"p{share * 100:g} {durations.quantile(share):.2f}" for share in SHARES]
        mean = durations.total / durations.count / 1000
        least, longest = durations.least / 1000, durations.most / 1000
        echo(f"ms: min {least:.2f}  mean {mean:.2f}  {'  '.join(parts)}  max {longest:.2f}")
        most = max(count for _, count in durations.bars())
        for bound, count in durations.bars():
            name = "longer" if bound == float("inf") else f"{bound:g} ms"
            echo(f"  {name:>9}  {'#' * max(round(BAR * count / most), 1 if count else 0):<{BAR}}  {count:,}")
    if result.cpu_seconds > BUSY * seconds:
        say("note: this command used a whole core, so the server may answer more than that")
