// Listeners that dispatch the event that they receive.
// expect: cpu or exception
// limits: cpu_ms=200
export default {
  async fetch(request, env, ctx) {
    const target = new EventTarget();
    for (let i = 0; i < 1000; i++) target.addEventListener("x", () => target.dispatchEvent(new Event("x")));
    target.dispatchEvent(new Event("x"));
  },
};
