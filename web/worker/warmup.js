// Calls a small built-in worker, so that the common path is compiled before the first call to a real worker.
//
// It runs while the snapshot is made, which keeps the bytecode of everything it touches. It runs again in every spare isolate,
// to page in the memory that a first call needs. No engine is behind `native` then: what a call sends is dropped.
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

/** `load` and `fetch` are the engine's entry points. Call ids start at 1 and are free again afterwards. */
export function warmUp(load, fetch) {
  let handler;
  load({ default: { fetch: (...args) => handler(...args) } });
  for (let i = 0; i < handlers.length; i++) {
    handler = handlers[i];
    fetch(i + 1, HEAD, null, false);
  }
}
