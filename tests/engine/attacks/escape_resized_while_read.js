// A buffer shrinks while the platform reads it.
// expect: answer 0 0 or exception
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const buffer = new ArrayBuffer(65536, { maxByteLength: 65536 });
    const bytes = new Uint8Array(buffer);
    const text = new TextDecoder().decode({
      get buffer() {
        buffer.resize(0);
        return buffer;
      },
      byteLength: 65536,
      byteOffset: 0,
    }.buffer);
    buffer.resize(10);
    const digest = crypto.subtle.digest({ get name() { buffer.resize(0); return "SHA-256"; } }, bytes);
    await digest;
    return new Response(`${text.length} ${bytes.length}`);
  },
};
