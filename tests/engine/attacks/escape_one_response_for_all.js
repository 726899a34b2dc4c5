// Many calls answer with the same response and stream at once, and all of them write to the stream.
// expect: answer mine or exception
// times: 6
// limits: cpu_ms=1000
const { readable, writable } = new TransformStream();
const writer = writable.getWriter();
const shared = new Response(readable);
let calls = 0;
export default {
  async fetch() {
    calls++;
    if (calls > 1) return shared;
    queueMicrotask(() => writer.write(new TextEncoder().encode("mine")).then(() => writer.close()));
    return shared;
  },
};
