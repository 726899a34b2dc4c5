// Captures an internal object in a tampered Map, and answers in the name of other calls.
// expect: answer mine or exception
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const { set } = Map.prototype;
    const caught = [];
    Map.prototype.set = function (key, value) {
      if (typeof value?.respond === "function") caught.push(value);
      return set.call(this, key, value);
    };
    await new Promise((resolve) => setTimeout(resolve, 1));
    ctx.waitUntil(Promise.resolve());
    Map.prototype.set = set;
    for (const call of caught) {
      const { id } = call;
      for (let other = 0; other < 3000; other++) {
        if (other === id) continue;
        call.id = other;
        try {
          call.respond(new Response("forged"));
          call.fail(2, new Error("forged"));
          call.finishIfDone();
        } catch {
          continue;
        }
      }
      call.id = id;
      call.answered = false;
    }
    return new Response("mine");
  },
};
