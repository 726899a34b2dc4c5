// Loads lazy modules of the platform near the end of the stack, where loading fails half way.
// expect: answer works
// limits: cpu_ms=5000
const uses = [
  () => console.info({ a: [1] }),
  () => new URLPattern({ pathname: "/:a" }).test("http://x/b"),
  () => new MessageChannel().port1.close(),
  () => new BroadcastChannel("x").close(),
  () => new CompressionStream("gzip"),
  () => new FormData().append("a", "b"),
  () => performance.mark("x"),
  () => new TextDecoder("shift_jis").decode(new Uint8Array(3)),
  () => new File(["x"], "x"),
];
let left = 300;
const deep = () => {
  try {
    deep();
  } catch {
    // the stack ends here
  }
  if (left-- <= 0) return;
  for (const use of uses) {
    try {
      use();
    } catch {
      // not enough stack yet
    }
  }
};
export default {
  async fetch(request, env, ctx) {
    deep();
    for (const use of uses) use();
    await crypto.subtle.digest("SHA-256", new Uint8Array(3));
    return new Response("works");
  },
};
