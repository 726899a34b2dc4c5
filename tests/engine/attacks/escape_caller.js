// Looks for the calling functions through `caller` and `arguments`.
// expect: answer false
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    function old() {
      try {
        return [old.caller, old.arguments, arguments.callee.caller].some((value) => typeof value === "function");
      } catch {
        return false;
      }
    }
    let leaked = false;
    new Headers({ get x() { leaked ||= old(); return "y"; } });
    return new Response(String(leaked));
  },
};
