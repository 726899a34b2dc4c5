// A replacement in a string of half a gigabyte.
// expect: cpu or memory
// engine: replaced
export default {
  async fetch(request, env, ctx) {
    const text = "ab".repeat(2 ** 27);
    return new Response(String(text.replaceAll("b", "c").length));
  },
};
