// Makes the platform report that it took more of the request body than arrived.
// expect: answer read or exception
// body: 500000
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const { shift } = Array.prototype;
    Array.prototype.shift = function () {
      const chunk = shift.call(this);
      return chunk instanceof Uint8Array ? new Proxy(chunk, { get: (target, name) => (name === "byteLength" ? 2 ** 31 : Reflect.get(target, name)) }) : chunk;
    };
    let size = 0;
    try {
      for await (const chunk of request.body) size += chunk.length ?? 0;
    } catch (error) {
      size = error.name;
    } finally {
      Array.prototype.shift = shift;
    }
    return new Response("read");
  },
};
