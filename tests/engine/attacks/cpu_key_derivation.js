// A key derivation of four thousand million rounds.
// expect: cpu or exception
export default {
  async fetch(request, env, ctx) {
    const key = await crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]);
    await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-512", salt: new Uint8Array(8), iterations: 2 ** 32 - 1 }, key, 512);
    return new Response("done");
  },
};
