// Sixty megabytes in an old encoding.
// expect: cpu or answer done
// limits: cpu_ms=50 memory_mb=256
export default {
  async fetch(request, env, ctx) {
    const bytes = new Uint8Array(6e7).fill(200);
    for (const label of ["gb18030", "shift_jis", "big5", "euc-kr"]) new TextDecoder(label).decode(bytes);
    return new Response("done");
  },
};
