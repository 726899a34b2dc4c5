// An event listener that does not return.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    const target = new EventTarget();
    target.addEventListener("x", () => {
      for (;;);
    });
    target.dispatchEvent(new Event("x"));
  },
};
