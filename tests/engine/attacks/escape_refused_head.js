// Captures an internal object and answers with a head that contains two.
// expect: exception the response was refused
// outcome: exception
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
    const empty = new ReadableStream({ start: (controller) => controller.close() });
    for (const call of caught) call.stream(200, "x: y\r\n\r\nHTTP/1.1 200 OK\r\n", empty);
    return new Response("mine");
  },
};
