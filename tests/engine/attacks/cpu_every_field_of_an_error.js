// Every field of a thrown value, and every conversion to a string, is code that never ends. It is thrown in the handler, in a listener and in waitUntil().
// expect: cpu
export default {
  fetch(request, env, ctx) {
    const loop = () => {
      for (;;);
    };
    const trap = () => new Proxy(new Error("x"), { get: loop, has: loop, getOwnPropertyDescriptor: loop, ownKeys: loop });
    ctx.waitUntil(Promise.reject(trap()));
    addEventListener("x", () => {
      throw trap();
    });
    dispatchEvent(new Event("x"));
    throw Object.create(null, Object.fromEntries(["name", "message", "stack", "toString", "toJSON", "constructor", "cause"].map((name) => [name, { get: loop }])));
  },
};
