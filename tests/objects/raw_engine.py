"""A real engine process that a test speaks to frame by frame, and the databases that its commits rebuild.

Nothing of the pool or the object runtime is between: what the engine sends is what a test sees. The worker gets its
storage from a binding that only this engine has, instead of from an object.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from atoll.engine.limits import PoolLimits
from atoll.engine.link.ledger import Ledger
from atoll.engine.loaded.load_frames import LoadFrames
from atoll.engine.process.engine_process import EngineCommand, Launched, Snapshot, ensure_snapshot, find_files
from atoll.engine.process.sandbox import needed_files
from atoll.wire.codec import HEADER_SIZE, encode_call, encode_hello, frame
from atoll.wire.generated import HEADER_LAYOUT, PAGE, WIRE_HASH, Flag, Frame
from atoll.wire.load import encode_load
from atoll.workers import Grant, Limits, Module, ModuleKind, Switches, Version

PATIENCE = 30.0
MOST_PAGES = 1 << 20
WORKER = 7

# `env.SLOTS.open(slot, sql)` is what ctx.storage will be.
BINDING = """
bundle.host.defineBinding("slots", class {
  #made = new Map();
  open(slot, sql = true) {
    const { makeStorage } = bundle.host.lazy("objects/storage.js");
    if (!this.#made.has(slot)) {
      this.#made.set(slot, makeStorage(slot, { sql, critical: (run) => run(), hasAlarmHandler: () => true }));
    }
    return this.#made.get(slot);
  }
});
"""

# Runs the code in the body of a request on the storage of the slot in its path, and answers with what it returns.
WORKER_SOURCE = """
const show = (key, value) => {
  if (value instanceof ArrayBuffer) return { buffer: [...new Uint8Array(value)] };
  if (value instanceof Map) return { map: [...value] };
  return value === undefined ? null : value;
};
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const storage = env.SLOTS.open(Number(url.pathname.slice(1)), !url.searchParams.has("keys"));
    const run = new Function("storage", "sql", `return (async () => {${await request.text()}})()`);
    try {
      const result = await run(storage, url.searchParams.has("keys") ? null : storage.sql);
      return new Response(JSON.stringify({ result: result === undefined ? null : result }, show));
    } catch (error) {
      return new Response(JSON.stringify({ error: `${error.name}: ${error.message}` }));
    }
  },
};
"""


@dataclass
class Copy:
    """The database of a slot, rebuilt from the frames of the engine alone."""

    sequence: int = 0
    pages: int = 0
    contents: dict[int, bytes] = field(default_factory=dict)
    alarms: list[int] = field(default_factory=list)  # as set by each commit that changed it; -1: deleted
    counts: list[int] = field(default_factory=list)  # pages of each commit

    def apply(self, payload: bytes) -> None:
        sequence, pages, count, alarm, at_ms = struct.unpack_from("<QIIQq", payload)
        assert sequence == self.sequence + 1, "commits have no gap"
        assert len(payload) == 32 + count * (4 + PAGE)
        numbers = struct.unpack_from(f"<{count}I", payload, 32)
        assert len(set(numbers)) == count and all(1 <= number <= pages for number in numbers)
        for place, number in enumerate(numbers):
            start = 32 + count * 4 + place * PAGE
            self.contents[number] = payload[start : start + PAGE]
        for number in [number for number in self.contents if number > pages]:
            del self.contents[number]
        self.sequence, self.pages = sequence, pages
        self.counts.append(count)
        if alarm:
            assert alarm in (1, 2) and (at_ms >= 0) == (alarm == 1)
            self.alarms.append(at_ms)

    def write(self, path: Path) -> None:
        blank = bytes(PAGE)
        path.write_bytes(b"".join(self.contents.get(number, blank) for number in range(1, self.pages + 1)))

    def opened(self, path: Path) -> sqlite3.Connection:
        """The rebuilt file, opened by Python's own SQLite, which has checked it."""
        self.write(path)
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection


@dataclass
class Answer:
    result: Any
    error: str
    failure: dict[str, Any] | None
    frames: list[int]  # kinds, in the order of their arrival


class RawEngine:
    def __init__(self, data: Path, *, cpu_ms: int = 2000, memory_mb: int = 128) -> None:
        files = replace(find_files(), host_script=BINDING)
        readable = needed_files(files.node, files.main, files.addon)
        snapshot = Snapshot(ensure_snapshot(files, data))
        command = EngineCommand(files, snapshot, 2, 1, 100_000, sandbox="try", readable=readable)
        self.launched = Launched(command, Ledger())
        self.socket = self.launched.socket
        self.socket.settimeout(PATIENCE)
        self._buffer = bytearray()
        self.copies: dict[int, Copy] = {}
        self.resets: dict[int, dict[str, Any]] = {}
        self.next_call = 1
        assert self.read()[0] == Frame.HELLO
        self.socket.sendall(encode_hello({"wire": WIRE_HASH}))
        self.load(WORKER, cpu_ms=cpu_ms, memory_mb=memory_mb)

    def load(self, worker: int, *, cpu_ms: int, memory_mb: int = 128, source: str = WORKER_SOURCE) -> None:
        version = Version(
            id=f"v{worker}",
            worker_id="w",
            worker_name="w",
            tenant="default",
            modules=(Module("worker.js", ModuleKind.ESM, source.encode()),),
            main="worker.js",
            grants={"SLOTS": Grant("SLOTS", "slots")},
            limits=Limits(cpu_ms=cpu_ms),
            switches=Switches(allow_eval=True),
        )
        meta, _ = LoadFrames(None, PoolLimits()).get(version, "v8")
        self.socket.sendall(b"".join(encode_load(worker, memory_mb, meta)))
        kind, flags, _, _, data = self.read()
        assert kind == Frame.LOADED and not flags & Flag.FAIL, data

    def __enter__(self) -> RawEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.launched.abandon()

    def read(self) -> tuple[int, int, int, int, bytes]:
        """The next frame: kind, flags, worker, call, payload."""
        head = self._take(HEADER_SIZE)
        length, kind, flags, _, worker, call = struct.unpack(HEADER_LAYOUT, head)
        return kind, flags, worker, call, self._take(length)

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError(f"the engine ended: {os.read(self.launched.output, 65536)!r}")
            self._buffer += data
        taken = bytes(memoryview(self._buffer)[:count])
        del self._buffer[:count]
        return taken

    def open(self, slot: int, path: Path | None = None, *, most_pages: int = MOST_PAGES, alarm_ms: int = -1) -> Copy:
        copy = self.copies[slot] = Copy()
        if path is not None:
            whole = path.read_bytes()
            copy.pages = len(whole) // PAGE
            copy.contents = {number: whole[(number - 1) * PAGE : number * PAGE] for number in range(1, copy.pages + 1)}
            fd = os.open(path, os.O_RDONLY)
            socket.send_fds(self.launched.files, [struct.pack("<II", WORKER, slot)], [fd])
            os.close(fd)
        fields = struct.pack("<B3xIQQq", path is not None, copy.pages, copy.sequence, most_pages, alarm_ms)
        self.socket.sendall(frame(Frame.OPEN, WORKER, slot, fields))
        return copy

    def close(self, slot: int) -> None:
        self.socket.sendall(frame(Frame.CLOSE, WORKER, slot))

    def stored(self, slot: int, durable: int, merged: int = 0) -> None:
        self.socket.sendall(frame(Frame.STORED, WORKER, slot, struct.pack("<QQ", durable, merged)))

    def send(self, slot: int, code: str, query: str = "") -> int:
        call, self.next_call = self.next_call, self.next_call + 1
        head = f"POST http://test/{slot}{query}\nHost: test\r\n".encode()
        self.socket.sendall(encode_call(WORKER, call, 0, head, code.encode(), True))
        return call

    def frames_of(self, call: int) -> Iterator[tuple[int, int, int, int, bytes]]:
        """Frames up to the end of the call. Commits are applied as they arrive."""
        while True:
            kind, flags, worker, number, payload = self.read()
            if kind == Frame.COMMIT:
                self.copies[number].apply(payload)
            if kind == Frame.RESET:
                self.resets[number] = json.loads(payload)
            yield kind, flags, worker, number, payload
            if number == call and (kind == Frame.DONE or (kind == Frame.RESPONSE and flags & Flag.DONE)):
                return

    def finish(self, call: int) -> Answer:
        answer = Answer(None, "", None, [])
        for kind, _, _, number, payload in self.frames_of(call):
            answer.frames.append(kind)
            if kind == Frame.RESPONSE and number == call:
                (length,) = struct.unpack_from("<I", payload, 8)
                said = json.loads(payload[12 + length :])
                answer.result, answer.error = said.get("result"), said.get("error", "")
            if kind == Frame.FAIL and number == call:
                answer.failure = json.loads(payload)
        return answer

    def cpu_us(self, call: int) -> int:
        """The CPU time that a call has used, once it is over."""
        for kind, _, _, number, payload in self.frames_of(call):
            if number == call and kind in (Frame.RESPONSE, Frame.DONE):
                (used,) = struct.unpack_from("<I", payload, 4 if kind == Frame.RESPONSE else 0)
        return int(used)

    def run(self, slot: int, code: str, query: str = "") -> Answer:
        return self.finish(self.send(slot, code, query))

    def value(self, slot: int, code: str, query: str = "") -> Any:
        answer = self.run(slot, code, query)
        assert not answer.error and answer.failure is None, answer
        return answer.result

    def error(self, slot: int, code: str, query: str = "") -> str:
        answer = self.run(slot, code, query)
        assert answer.error, answer
        return answer.error
