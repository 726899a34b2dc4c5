"""A connection that receives its packets one by one; nothing in between can merge or reorder them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass

import uvloop
from scripted import ScriptedCall, ScriptedPool, echo, version

from atoll.front.connection import ClientConnection
from atoll.front.options import FrontOptions
from atoll.front.shared import Shared
from atoll.router import Router

STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class Tap(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def writelines(self, list_of_data: object) -> None:
        for data in list_of_data:  # type: ignore[attr-defined]
            self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def set_protocol(self, protocol: object) -> None: ...

    def close(self) -> None:
        self.is_closed = True

    abort = write_eof = close


@dataclass
class Outcome:
    """The result of some packets."""

    written: bytes
    calls: list[ScriptedCall]
    is_closed: bool

    @property
    def statuses(self) -> list[int]:
        return [int(status) for status in STATUS.findall(self.written)]


def run_packets(packets: list[bytes], script: Callable[[ScriptedCall], None] = echo) -> Outcome:
    async def run() -> Outcome:
        pool = ScriptedPool()
        pool.script = script
        if script is echo:
            pool.on_chunk = lambda call, chunk, ended: echo(call)
        router = Router()
        router.put("w", version("w"))
        shared = Shared(pool, router, None, FrontOptions())
        connection = ClientConnection(shared)
        tap = Tap()
        connection.connection_made(tap)
        for packet in packets:
            if not connection.is_lost:
                connection.data_received(packet)
            await asyncio.sleep(0)
        quiet = 0
        seen = (0, 0)
        while quiet < 10:  # turns of the loop in which nothing happens
            await asyncio.sleep(0)
            now = (len(tap.written), len(connection.buffer))
            quiet = 0 if now != seen or shared.turns.waiting else quiet + 1
            seen = now
        if not connection.is_lost:
            connection.connection_lost(None)
        return Outcome(bytes(tap.written), pool.calls, tap.is_closed)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())
