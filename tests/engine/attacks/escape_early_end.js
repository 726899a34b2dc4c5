// Captures an internal object and ends its own call before it is answered.
// expect: internal or exception or answer mine
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
      call.answered = true;
      call.waits = 0;
      call.finishIfDone();
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
    return new Response("mine");
  },
};
