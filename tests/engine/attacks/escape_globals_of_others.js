// Leaves marks on every object, which no other worker may see.
// expect: exception
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    for (const holder of [globalThis, Object.prototype, Array.prototype, Response, Response.prototype, Promise, JSON, Math, Request.prototype, Error]) holder.leaked = "leaked";
    Object.freeze(Object.prototype);
    Response.json = () => new Response("stolen");
    globalThis.Response = class {};
    const { Response: Again } = await import("data:,").catch(() => ({}));
    return Again ?? Reflect.construct(request.clone().constructor === Request ? Object.getPrototypeOf(Again ?? {}).constructor : Object, []);
  },
};
