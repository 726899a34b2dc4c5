// The worker of bench/bindings.py: does ?n= operations of one kind at once.
const KILOBYTE = "x".repeat(1024);
const CACHED = "http://cache.example/hit";
let last = 0;
let delivered = 0;

const many = (count, act) => Promise.all(Array.from({ length: count }, (_, i) => act(i)));

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const count = Number(searchParams.get("n"));
    if (pathname === "/fill") {
      await many(100, (i) => env.KV.put(`get:${i}`, KILOBYTE));
      await caches.default.put(CACHED, new Response(KILOBYTE, { headers: { "cache-control": "max-age=86400" } }));
      return new Response("filled");
    }
    if (pathname === "/get") return sizes(await many(count, (i) => env.KV.get(`get:${i}`)), count);
    if (pathname === "/hit") {
      return sizes(await many(count, async () => (await caches.default.match(CACHED)).text()), count);
    }
    if (pathname === "/put") {
      await many(count, () => env.KV.put(`put:${last++ % 10_000}`, KILOBYTE));
      return new Response("put");
    }
    if (pathname === "/send") {
      await many(count, (i) => env.QUEUE.send({ number: i, text: "a job that is to be done by somebody, some time" }));
      return new Response("sent");
    }
    if (pathname === "/delivered") return new Response(`${delivered}`);
    const { keys } = await env.KV.list({ prefix: "key:05" });
    return new Response(`${keys.length}`);
  },

  queue(batch) {
    delivered += batch.messages.length;
  },
};

/** Fails on a wrong answer: its speed is meaningless. */
function sizes(values, count) {
  const right = values.length === count && values.every((value) => value.length === 1024);
  return new Response(right ? "right" : "wrong", { status: right ? 200 : 500 });
}
