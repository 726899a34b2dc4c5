// Captures an internal object and answers again and again.
// expect: answer answer 0 or answer mine or exception
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
      for (let i = 0; i < 100; i++) {
        call.respond(new Response(`answer ${i}`));
        call.stream(200, "", new ReadableStream({ start: (controller) => controller.close() }));
        call.fail(2, new Error("and failed"));
        call.cancel(true);
      }
    }
    return new Response("mine");
  },
};
