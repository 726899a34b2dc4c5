// Adds properties to Object.prototype, which all internal objects inherit.
// expect: answer mine or exception
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    Object.prototype.status = 500;
    Object.prototype.headers = { evil: "yes" };
    Object.prototype.body = "evil";
    Object.prototype.get = () => "evil";
    Object.prototype.call = 1;
    Object.prototype.redirect = "evil";
    try {
      return new Response("mine", { status: 200, headers: {} });
    } finally {
      for (const name of ["status", "headers", "body", "get", "call", "redirect"]) delete Object.prototype[name];
    }
  },
};
