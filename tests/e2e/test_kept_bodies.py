"""A body that one call keeps for a later call is read completely or refused with a TypeError, never empty or short."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.running import Atoll
from tests.upstream import Upstream

SIZE = 700_000

WORKER = """
import { WorkerEntrypoint } from "cloudflare:workers";
const kept = {};
const SIZE = %d;

async function restOf(reader) {
  await reader.read();
  const pull = async (controller) => {
    const { value, done } = await reader.read();
    if (done) controller.close();
    else controller.enqueue(value);
  };
  return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }));
}

const KEEP = {
  "request": (request) => request,
  "its clone": (request) => request.clone(),
  "one it was copied to": (request) => new Request(request),
  "its stream": (request) => new Response(request.body),
  "a branch of its stream": (request) => new Response(request.body.tee()[0]),
  "what follows a piece": async (request) => {
    return restOf(request.body.getReader());
  },
  "a fetched response": (request, env) => fetch(env.UP + "/bytes/" + SIZE),
  "a clone of a fetched response": async (request, env) => (await fetch(env.UP + "/bytes/" + SIZE)).clone(),
  "what follows a piece of a fetched response": async (request, env) => {
    const response = await fetch(env.UP + "/bytes/" + SIZE);
    return restOf(response.body.getReader());
  },
  "a decoded response": (request, env) => fetch(env.UP + "/coded-bytes/br/" + SIZE),
  "a KV stream": async (request, env) => {
    await env.KV.put("k", "x".repeat(SIZE));
    return new Response(await env.KV.get("k", "stream"));
  },
  "a cached response": async (request, env) => {
    const headers = { "cache-control": "max-age=100" };
    await caches.default.put("http://cached/", new Response("x".repeat(SIZE), { headers }));
    return caches.default.match("http://cached/");
  },
  "a response of a bound worker": (request, env) => env.SELF.fetch("http://self/large"),
  "a stream of a method": async (request, env) => new Response(await env.SELF.large()),
};

const READ = {
  text: async (body) => (await body.text()).length,
  arrayBuffer: async (body) => (await body.arrayBuffer()).byteLength,
  blob: async (body) => (await body.blob()).size,
  formData: async (body) => {
    const multipart = new Response(body.body, { headers: { "content-type": "application/x-www-form-urlencoded" } });
    return [...(await multipart.formData())].flat().join("").length;
  },
  stream: async (body) => {
    let length = 0;
    for await (const chunk of body.body) length += chunk.length;
    return length;
  },
  "pipeThrough": async (body) => (await new Response(body.body.pipeThrough(new TransformStream())).text()).length,
  clone: async (body) => (await body.clone().text()).length,
};

export default class extends WorkerEntrypoint {
  large() { return new Response("x".repeat(SIZE)).body; }
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const { env } = this;
    if (pathname === "/large") return new Response("x".repeat(SIZE));
    if (pathname === "/names") return Response.json([Object.keys(KEEP), Object.keys(READ)]);
    const what = searchParams.get("what");
    const how = searchParams.get("how");
    if (pathname === "/keep") {
      kept[what + how] = await KEEP[what](request, env);
      return new Response("kept");
    }
    try {
      return Response.json([await READ[how](kept[what + how])]);
    } catch (error) {
      return Response.json([error instanceof TypeError, error.name, error.message, error.stack]);
    }
  }
}
"""


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, upstream: Upstream) -> Iterator[Atoll]:
    atoll = Atoll(tmp_path_factory.mktemp("kept"), egress_allow="127.0.0.1", engines=1)
    atoll.start()
    bindings = [
        {"type": "kv", "name": "KV", "namespace": "kept"},
        {"type": "service", "name": "SELF", "service": "keeper"},
    ]
    atoll.deploy("keeper", "export default { fetch() {} };")
    atoll.deploy(
        "keeper",
        WORKER % SIZE,
        bindings=bindings,
        env={"UP": upstream.url},
        limits={"cpu_ms": 2000, "subrequests": 500},
    )
    yield atoll
    atoll.stop()


def test_a_kept_body_is_read_completely_or_refused(node: Atoll) -> None:
    names, ways = node.get("keeper", "/names").json
    wrong = []
    for what in names:
        for how in ways:
            query = f"?what={quote(what)}&how={quote(how)}"
            assert node.post("keeper", "/keep" + query, b"x" * SIZE).text == "kept", what
            found = node.get("keeper", "/read" + query).json
            if found != [SIZE] and not (found[0] is True and len(found[2]) > 20):
                wrong.append(f"{what}, {how}: {found}")
    assert not wrong, "\n".join(wrong)


def test_a_kept_stream_does_not_read_the_body_of_a_later_call(node: Atoll) -> None:
    node.deploy(
        "mixer",
        """
        let kept;
        const open = async (env, key) => {
          await env.KV.put(key, key.repeat(700_000));
          return (await env.KV.get(key, "stream")).getReader();
        };
        export default { async fetch(request, env) {
          if (kept === undefined) {
            kept = await open(env, "a");
            return new Response("kept");
          }
          const own = await open(env, "b");
          await own.read();
          const found = [];
          try {
            for (let piece = await kept.read(); !piece.done; piece = await kept.read()) found.push(piece.value[0]);
          } catch (error) {
            found.push(error.name);
          }
          return Response.json([...new Set(found)]);
        } };""",
        bindings=[{"type": "kv", "name": "KV", "namespace": "mixed"}],
    )
    assert node.get("mixer").text == "kept"
    assert node.get("mixer").json in (["TypeError"], [97, "TypeError"])
