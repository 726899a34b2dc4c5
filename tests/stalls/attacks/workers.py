"""Workers that keep the link between their engine and Python busy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tests.raw_websocket import frame, handshake
from tests.stalls.attacks.websockets import DEFLATE
from tests.stalls.stage import Stage, attack

LIMITS = {"cpu_ms": 30_000}
CLOSE = b"\x88\x00"
TALKER = """export default { fetch(request) {
  if (request.headers.get("upgrade") !== "websocket") return new Response("sockets only");
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.addEventListener("message", () => { TALK });
  return new Response(null, { status: 101, webSocket: client });
} };"""


def talk(stage: Stage, code: str, **headers: str) -> Iterator[None]:
    """A worker sends what the code says to a client that reads it all."""
    name = stage.deploy("talker", TALKER.replace("TALK", code + " server.close();"), limits=LIMITS)
    with handshake(stage.node, name, **headers) as client:
        yield
        client.sendall(frame(1, b"go"))
        said = b""
        while not said.endswith(CLOSE):
            said = said[-2:] + client.recv(1 << 20)


def ask(stage: Stage, code: str, expected: str, *, times: int = 1) -> Iterator[None]:
    """A worker runs this code for a request."""
    source = f"export default {{ async fetch(request, env, ctx) {{ {code} }} }};"
    name = stage.deploy("asker", source, limits={**LIMITS, "subrequests": 10_000})
    yield
    for _ in range(times):
        assert stage.node.get(name).text == expected


@attack("worker: tiny messages to a client that does not read")
def unread_messages(stage: Stage) -> Iterator[None]:
    code = "for (let i = 0; i < 20_000; i++) server.send('');"
    name = stage.deploy("talker", TALKER.replace("TALK", code), limits=LIMITS)
    with handshake(stage.node, name) as client:
        yield
        client.sendall(frame(1, b"go"))
        client.recv(1)
        time.sleep(1)


@attack("worker: tiny messages to a client that reads")
def read_messages(stage: Stage) -> Iterator[None]:
    yield from talk(stage, "for (let i = 0; i < 20_000; i++) server.send('x');")


@attack("worker: small compressed messages to a client that reads")
def packed_messages(stage: Stage) -> Iterator[None]:
    code = "const text = 'x'.repeat(130); for (let i = 0; i < 10_000; i++) server.send(text);"
    yield from talk(stage, code, **DEFLATE)


@attack("worker: a compressed message of 32 MB", memory_mb=96)
def long_message(stage: Stage) -> Iterator[None]:
    code = """const data = new Uint8Array(32 << 20), noise = new Uint8Array(65_536);
      for (let at = 0; at < data.length; at += noise.length) {
        data.set(crypto.getRandomValues(noise).map((byte) => byte & 31), at);
      }
      server.send(data);"""
    yield from talk(stage, code, **DEFLATE)


@attack("worker: a response body of pieces of one byte")
def small_pieces(stage: Stage) -> Iterator[None]:
    code = """const piece = new Uint8Array(1); let left = 200_000;
      return new Response(new ReadableStream({ pull(controller) {
        for (let i = 0; i < 5000 && left; i++, left--) controller.enqueue(piece);
        if (!left) controller.close();
      } }, { highWaterMark: 100_000 }));"""
    yield from ask(stage, code, "\0" * 200_000)


@attack("worker: thousands of small operations at once")
def small_operations(stage: Stage) -> Iterator[None]:
    code = """const cache = caches.default;
      for (let round = 0; round < 8; round++) {
        await Promise.allSettled(Array.from({ length: 990 }, (_, i) => cache.match("http://x/" + i)));
      }
      return new Response("asked");"""
    yield from ask(stage, code, "asked", times=3)


@attack("worker: fetches that are refused")
def refused_fetches(stage: Stage) -> Iterator[None]:
    code = """for (let round = 0; round < 4; round++) {
        await Promise.allSettled(Array.from({ length: 900 }, () => fetch("http://10.0.0.1:1/")));
      }
      return new Response("asked");"""
    yield from ask(stage, code, "asked")


@attack("worker: console lines without end")
def console_lines(stage: Stage) -> Iterator[None]:
    yield from ask(stage, "for (let i = 0; i < 200_000; i++) console.log(''); return new Response('said');", "said")


@attack("worker: a socket between two workers with tiny messages")
def inner_messages(stage: Stage) -> Iterator[None]:
    other = stage.deploy(
        "talker-inside", TALKER.replace("TALK", "for (let i = 0; i < 50_000; i++) server.send('');"), limits=LIMITS
    )
    code = f"""const socket = new WebSocket("ws://{stage.node.host(other)}/");
      await new Promise((resolve) => {{ socket.onopen = resolve; socket.onerror = resolve; }});
      let count = 0;
      await new Promise((resolve) => {{
        socket.onmessage = () => {{ if (++count === 50_000) resolve(); }};
        socket.onclose = resolve;
        setTimeout(resolve, 5000);
        socket.send("go");
      }});
      return new Response(String(count));"""
    yield from ask(stage, code, "50000")


@attack("worker: a request body sent in pieces of one byte")
def small_uploads(stage: Stage) -> Iterator[None]:
    code = """let left = 20_000;
      const body = new ReadableStream({ pull(controller) {
        controller.enqueue(new Uint8Array(1));
        if (!--left) controller.close();
      } });
      const answer = await fetch(new URL("/sink", request.url), { method: "POST", body, duplex: "half" });
      return new Response(await answer.text());"""
    code = f"""if (new URL(request.url).pathname === "/sink") {{
        for await (const piece of request.body) {{}}
        return new Response("taken");
      }}
      {code}"""
    yield from ask(stage, code, "taken")


@attack("worker: fetch with bodies of 40 MB", memory_mb=400)
def large_bodies(stage: Stage) -> Iterator[None]:
    code = """if (request.method === "POST") return new Response("taken");
      const body = new Uint8Array(40 << 20);
      for (let i = 0; i < 4; i++) await (await fetch(request.url, { method: "POST", body })).text();
      return new Response("sent");"""
    yield from ask(stage, code, "sent")


@attack("worker: large values for the cache", memory_mb=400)
def large_values(stage: Stage) -> Iterator[None]:
    code = """const body = new Uint8Array(40 << 20);
      for (let i = 0; i < 3; i++) {
        await caches.default.put("http://x/" + i, new Response(body, { headers: { "cache-control": "max-age=60" } }));
        await (await caches.default.match("http://x/" + i))?.arrayBuffer();
      }
      return new Response("kept");"""
    yield from ask(stage, code, "kept")


@attack("worker: methods with arguments of megabytes", memory_mb=400)
def large_arguments(stage: Stage) -> Iterator[None]:
    callee = """import { WorkerEntrypoint } from "cloudflare:workers";
      export default class extends WorkerEntrypoint { take(data) { return data; } }"""
    stage.deploy("taker", callee, limits=LIMITS)
    source = """export default { async fetch(request, env) {
      for (let i = 0; i < 3; i++) await env.TAKER.take(new Uint8Array(20 << 20));
      return new Response("taken");
    } };"""
    binding = {"type": "service", "name": "TAKER", "service": "taker"}
    name = stage.deploy("giver", source, limits=LIMITS, bindings=[binding])
    yield
    assert stage.node.get(name).text == "taken"


@attack("worker: a hundred responses in pieces of one byte")
def many_small_pieces(stage: Stage) -> Iterator[None]:
    code = """let left = 4000;
      return new Response(new ReadableStream({ async pull(controller) {
        controller.enqueue(new Uint8Array(1));
        if (!--left) controller.close();
      } }));"""
    source = f"export default {{ async fetch(request, env, ctx) {{ {code} }} }};"
    name = stage.deploy("drips", source, limits=LIMITS)
    yield
    with ThreadPoolExecutor(100) as threads:
        answers = threads.map(lambda _: stage.node.get(name).body, range(100))
    assert all(len(body) == 4000 for body in answers)


@attack("worker: timers that are always due")
def due_timers(stage: Stage) -> Iterator[None]:
    code = """const end = Date.now() + 1500; let turns = 0;
      await new Promise((resolve) => {
        const step = () => { turns++; if (Date.now() < end) setTimeout(step, 0); else resolve(); };
        step();
      });
      return new Response(turns > 1000 ? "done" : `only ${turns} turns`);"""
    yield from ask(stage, code, "done")
