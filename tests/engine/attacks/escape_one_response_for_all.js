// One response, with one stream, is the answer of many calls at once, and its stream is fed by all of them.
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
