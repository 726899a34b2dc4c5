"""Addresses of one host, tried in parallel: real sockets, one of them to a server that never answers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from functools import partial
from ipaddress import ip_address

import pytest

from atoll.egress.gate import open_socket
from atoll.egress.race import race

HOST = ip_address("127.0.0.1")


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that never answers: its accept queue is full."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        waiting = [socket.socket() for _ in range(8)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        yield port
        for each in waiting:
            each.close()


@pytest.fixture
def server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


async def winner(*ports: int) -> int:
    connected = await race([partial(open_socket, HOST, port) for port in ports], head_start=0.01)
    with connected:
        return int(connected.getpeername()[1])


async def test_an_address_that_never_answers_does_not_delay_the_others(silent: int, server: int) -> None:
    async with asyncio.timeout(20):
        assert await winner(silent, server) == server
        assert await winner(silent, silent, server) == server


async def test_after_a_refusal_the_next_address_is_tried_at_once(closed: int, server: int) -> None:
    async with asyncio.timeout(20):
        found = await race([partial(open_socket, HOST, port) for port in (closed, server)], head_start=600)
        found.close()


async def test_the_first_address_that_answers_is_used(server: int, silent: int) -> None:
    assert await winner(server, silent) == server


async def test_if_no_address_answers_the_error_says_why(closed: int) -> None:
    with pytest.raises(ConnectionRefusedError):
        await winner(closed, closed)


async def test_a_cancelled_race_leaves_no_socket_open(silent: int) -> None:
    """A socket left open would cause a warning, which is an error here."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await winner(silent, silent)
