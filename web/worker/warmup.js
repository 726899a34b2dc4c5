// A few calls to a worker of our own, so that the first call to a real one finds everything compiled.
//
// It runs while the snapshot is made, which keeps the bytecode of all it touches, and again in every spare isolate, where it
// brings in the memory a first call needs. There is no engine behind `native` then: what a call sends goes nowhere.
import { TextEncoder } from "../encoding/text_encoder.js";
import { Response } from "../fetch/response.js";
import { ReadableStream } from "../streams/streams.js";
import { URL } from "../url/url.js";

const HEAD = "GET http://warm.localhost/path?a=b\nHost: warm.localhost\r\nAccept: */*\r\n";

const handlers = [
  () => new Response("text"),
  (request) => new Response(new URL(request.url).searchParams.get("a"), { status: 404, headers: { "x-a": request.method } }),
  async (request) => Response.json({ agent: request.headers.get("accept"), all: [...request.headers] }),
  (request, env, ctx) => {
    ctx.waitUntil(Promise.resolve());
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode("chunk"));
        controller.close();
      },
    });
    return new Response(stream);
  },
];

/** `load` and `fetch` are the entry points of the engine; call ids are taken from 1 and free again afterwards. */
export function warmUp(load, fetch) {
  let handler;
  load({ default: { fetch: (...args) => handler(...args) } }, { NAME: "value" }, []);
  for (let i = 0; i < handlers.length; i++) {
    handler = handlers[i];
    fetch(i + 1, HEAD, null, false);
  }
}
