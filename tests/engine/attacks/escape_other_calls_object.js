// Uses objects of a call that has ended.
// expect: answer survived
// times: 3
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    if (globalThis.old) {
      const { request: before, ctx: oldContext } = globalThis.old;
      let result = "";
      try {
        oldContext.waitUntil(new Promise(() => {}));
        result += "waited ";
      } catch (error) {
        result += error.name;
      }
      try {
        result += await before.text();
      } catch (error) {
        result += error.name;
      }
      return new Response("survived");
    }
    globalThis.old = { request, ctx };
    return new Response("survived");
  },
};
