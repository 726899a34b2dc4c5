// A host name of sixty thousand Chinese characters: Punycode takes quadratic time.
// expect: cpu
// engine: replaced
export default {
  async fetch(request, env, ctx) {
    const host = Array.from({ length: 60_000 }, (_, i) => String.fromCodePoint(0x4e00 + (i % 20_000))).join("");
    new URL(`http://${host}/`);
  },
};
