// Goes on from digest to digest when its call is over.
// expect: answer begun or answer harmless
// limits: cpu_ms=200
// times: 2
let ran = 0;
let begun = false;
export default {
  async fetch(request, env, ctx) {
    if (begun) {
      for (let i = 0; i < 20 && ran < 2; i++) await new Promise((resolve) => setTimeout(resolve, 25));
      return new Response(ran < 2 ? "harmless" : `ran: ${ran}`);
    }
    begun = true;
    (async () => {
      for (const bytes = new Uint8Array(3e6); ; ran++) await crypto.subtle.digest("SHA-256", bytes);
    })();
    return new Response("begun");
  },
};
