"""Load on a node that is replaced meanwhile, and everything that clients may expect of it.

tests/e2e/test_replace.py runs a few seconds of it, `python -m bench.replace` the full load.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.running import Atoll

NAME = "under-load"
SOURCE = """
import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {
  async fetch() {
    const number = ((await this.ctx.storage.get("n")) ?? 0) + 1;
    await this.ctx.storage.put("n", number);
    return new Response(String(number));
  }
}
const pause = (ms) => new Promise((wake) => setTimeout(wake, ms));
export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const key = searchParams.get("key");
    if (request.headers.get("upgrade") === "websocket") {
      const [client, server] = Object.values(new WebSocketPair());
      server.accept();
      server.addEventListener("message", async ({ data }) => {
        await env.KV.put(data, "socket");
        server.send(data);
      });
      return new Response(null, { status: 101, webSocket: client });
    }
    if (pathname === "/put") {
      await env.KV.put(key, "put");
      return new Response(key);
    }
    if (pathname === "/has") return new Response((await env.KV.get(key)) ?? "missing");
    if (pathname === "/count") return env.COUNTER.getByName("only").fetch(request);
    if (pathname === "/stream") {
      const { readable, writable } = new TransformStream();
      const writer = writable.getWriter();
      const write = async () => {
        for (let n = 0; n < Number(searchParams.get("lines")); n++) {
          await pause(100);
          await env.KV.put(`${key}-${n}`, "stream");
          await writer.write(new TextEncoder().encode(`${n}\\n`));
        }
        await writer.write(new TextEncoder().encode("end\\n"));
        await writer.close();
      };
      write().catch((error) => writer.abort(error));
      return new Response(readable);
    }
    return new Response("Hello!");
  },
};
"""
FIELDS = {
    "bindings": [
        {"type": "kv", "name": "KV", "namespace": "under-load"},
        {"type": "durable_object", "name": "COUNTER", "class_name": "Counter"},
    ],
    "migrations": [{"tag": "v1", "new_sqlite_classes": ["Counter"]}],
    "limits": {"wall_ms": 120_000, "internal_subrequests": 10_000},
}
SERVICE_RESTART = 1012
CLIENTS = 24  # with a connection each; every sixth opens a new one for each request


@dataclass
class Found:
    """What the clients saw."""

    answered: int = 0
    problems: list[str] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)  # keys of acknowledged writes
    numbers: list[int] = field(default_factory=list)  # that the object gave
    slowest: float = 0.0
    streams: int = 0
    restarts: int = 0  # WebSockets that were told 1012
    messages: int = 0


class Load:
    """Clients of one worker. `run` ends once `change` is over and everything that was begun has ended."""

    def __init__(self, atoll: Atoll, *, rate: float, sockets: int, streams: int, stream_lines: int) -> None:
        self.atoll, self.rate, self.sockets, self.streams, self.lines = atoll, rate, sockets, streams, stream_lines
        self.found = Found()
        self._ids = itertools.count()
        self._over = False

    async def run(self, change: Callable[[], Awaitable[None]]) -> Found:
        clients = [asyncio.ensure_future(self._client(number)) for number in range(CLIENTS)]
        sockets = [asyncio.ensure_future(self._socket(number)) for number in range(self.sockets)]
        streams = [asyncio.ensure_future(self._stream()) for _ in range(self.streams)]
        try:
            await change()
            await asyncio.gather(*streams)
            async with asyncio.timeout(60):
                while self.found.restarts < self.sockets:  # noqa: ASYNC110 (the clients count)
                    await asyncio.sleep(0.02)
            self._over = True
            await asyncio.gather(*clients, *sockets)
        finally:
            for task in (*clients, *sockets, *streams):
                task.cancel()
        return self.found

    def check(self) -> None:
        """Compare what was acknowledged with what is there now."""
        found = self.found
        for key in found.stored:
            if self.atoll.get(NAME, f"/has?key={key}").text == "missing":
                found.problems.append(f"the write of {key} was acknowledged and is lost")
        if len(set(found.numbers)) != len(found.numbers):
            found.problems.append("an object gave one number twice: there were two of it")
        if found.numbers and int(self.atoll.get(NAME, "/count").text) <= max(found.numbers):
            found.problems.append("an object forgot a number that it gave")

    # --- requests ---

    async def _client(self, number: int) -> None:
        keeps = number % 6 != 5
        reader: asyncio.StreamReader | None = None
        writer: asyncio.StreamWriter | None = None
        paths = itertools.cycle(["/", "/put", "/", "/count"])
        pause = CLIENTS / self.rate
        while not self._over:
            began = time.monotonic()
            path = next(paths)
            key = f"r{next(self._ids)}"
            try:
                if reader is None or writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", self.atoll.port)
                body, closes = await asyncio.wait_for(self._ask(reader, writer, f"{path}?key={key}", keeps), 60)
                self._take(path, key, body)
                if closes:
                    writer.close()
                    reader = writer = None
            except Exception as error:
                self.found.problems.append(f"{path}: {type(error).__name__}: {error}")
                if writer is not None:
                    writer.close()
                reader = writer = None
            took = time.monotonic() - began
            self.found.slowest = max(self.found.slowest, took)
            await asyncio.sleep(max(pause - took, 0))
        if writer is not None:
            writer.close()

    def _take(self, path: str, key: str, body: bytes) -> None:
        self.found.answered += 1
        if path == "/put":
            self.found.stored.append(key)
        if path == "/count":
            self.found.numbers.append(int(body))
        elif body != (key.encode() if path == "/put" else b"Hello!"):
            self.found.problems.append(f"{path} was answered with {body[:100]!r}")

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str, keeps: bool
    ) -> tuple[bytes, bool]:
        """Send a request; returns the body, and whether the connection ends."""
        end = "" if keeps else "Connection: close\r\n"
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {self.atoll.host(NAME)}\r\n{end}\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = head.split(b" ", 2)[1]
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
        body = await reader.readexactly(length)
        if status != b"200":
            raise ValueError(f"{status.decode()} {body[:200]!r}")
        return body, b"connection: close" in head

    # --- what lasts ---

    async def _stream(self) -> None:
        key = f"s{next(self._ids)}"
        reader, writer = await asyncio.open_connection("127.0.0.1", self.atoll.port)
        head = f"GET /stream?key={key}&lines={self.lines} HTTP/1.1\r\nHost: {self.atoll.host(NAME)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode())
        content = b""
        with suppress(ConnectionError):
            content = await reader.read(-1)
        writer.close()
        wanted = "".join(f"{n}\n" for n in range(self.lines))
        text = "".join(content.decode().partition("\r\n\r\n")[2].split("\r\n")[1::2])
        if text != wanted + "end\n":
            self.found.problems.append(f"a stream ended early: …{content[-200:]!r}")
        self.found.stored += [f"{key}-{n}" for n in range(self.lines) if f"\n{n}\n" in f"\n{text}"]
        self.found.streams += 1

    async def _socket(self, number: int) -> None:
        uri = f"ws://{self.atoll.host(NAME)}/"
        while not self._over:
            try:
                async with connect(uri, host="127.0.0.1", port=self.atoll.port, compression=None) as socket:
                    await self._talk(socket)
            except ConnectionClosed as error:
                if error.rcvd is None or error.rcvd.code != SERVICE_RESTART:
                    self.found.problems.append(f"a WebSocket ended with {error!r}")
                self.found.restarts += 1
            except Exception as error:
                self.found.problems.append(f"a WebSocket could not be opened: {type(error).__name__}: {error}")
                await asyncio.sleep(0.1)

    async def _talk(self, socket: object) -> None:
        from websockets.asyncio.client import ClientConnection

        assert isinstance(socket, ClientConnection)
        while not self._over:
            key = f"w{next(self._ids)}"
            await socket.send(key)
            answer = await asyncio.wait_for(socket.recv(), 30)
            if answer != key:
                self.found.problems.append(f"a WebSocket answered {answer!r} to {key!r}")
            self.found.stored.append(key)
            self.found.messages += 1
            await asyncio.sleep(0.25)
