// What bench/r2.py asks for: ?n= operations of one kind at once.
const KILOBYTE = "x".repeat(1024);
const MEGABYTE = new Uint8Array(1 << 20).fill(120);
let last = 0;

const many = (count, act) => Promise.all(Array.from({ length: count }, (_, i) => act(i)));

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const count = Number(searchParams.get("n"));
    if (pathname === "/fill") {
      await many(50, (i) => env.R2.put(`get:${i}`, KILOBYTE));
      await env.R2.put("large", MEGABYTE);
      return new Response("filled");
    }
    if (pathname === "/get") {
      const texts = await many(count, async (i) => (await env.R2.get(`get:${i}`)).text());
      return new Response(`${texts.reduce((sum, text) => sum + text.length, 0)}`);
    }
    if (pathname === "/put") {
      await many(count, () => env.R2.put(`put:${last++ % 10_000}`, KILOBYTE));
      return new Response("put");
    }
    if (pathname === "/put-large") {
      await many(count, () => env.R2.put(`large:${last++ % 50}`, MEGABYTE));
      return new Response("put");
    }
    if (pathname === "/stream") return new Response((await env.R2.get("large")).body);
    if (pathname === "/read") {
      const sizes = await many(count, async () => (await (await env.R2.get("large")).arrayBuffer()).byteLength);
      return new Response(`${sizes.reduce((sum, size) => sum + size, 0)}`);
    }
    if (pathname === "/upload") {
      await env.R2.put(`upload:${last++ % 50}`, request.body);
      return new Response("put");
    }
    return new Response("no such operation", { status: 404 });
  },
};
