// Captures an internal object and answers with an invalid response.
// expect: internal or exception or answer mine or broken
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const { set } = Map.prototype;
    const caught = [];
    Map.prototype.set = function (key, value) {
      if (typeof value?.respond === "function") caught.push(value);
      return set.call(this, key, value);
    };
    ctx.waitUntil(Promise.resolve());
    Map.prototype.set = set;

    for (const call of caught) {
      call.stream(70000, "x\r\n\r\nHTTP/1.1 200 OK\r\n", new ReadableStream({ start: (controller) => controller.close() }));
    }
    return new Response("mine");
  },
};
