// The worker of bench/web.py: each path does one thing `n` times. The clock of an isolate stands still while it runs, so the
// benchmark measures from outside, as the difference to n = 0.
const TESTS = {
  "/url": (request) => new URL(request.url).pathname.length,
  "/headers": () => new Headers({ accept: "*/*", "content-type": "text/plain", "x-one": "1" }).get("x-one").length,
  "/get": (request) => request.headers.get("accept").length,
};

export default {
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const times = Number(searchParams.get("n"));
    if (pathname === "/hello") return new Response("hello");
    if (pathname === "/json") return Response.json({ message: "hello", ok: true, list: [1, 2, 3] });
    if (pathname === "/identity") return new Response(request.body);
    if (pathname === "/sha256") {
      if (globalThis.crypto.subtle === undefined) return new Response("none");
      const data = new Uint8Array(1 << 20);
      for (let i = 0; i < times; i++) await crypto.subtle.digest("SHA-256", data);
      return new Response("done");
    }
    let sum = 0;
    for (let i = 0; i < times; i++) sum += TESTS[pathname](request);
    return new Response(sum);
  },
};
