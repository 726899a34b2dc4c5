// Detaches memory while it is in use.
// expect: answer 0 0
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const bytes = new Uint8Array(100000);
    const response = new Response(new ReadableStream({
      pull(controller) {
        controller.enqueue(bytes.slice());
        structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
        controller.close();
      },
    }));
    await response.arrayBuffer();
    const key = crypto.subtle.digest("SHA-256", new Uint8Array(1e6));
    const late = new Uint8Array(1e6);
    const digest = crypto.subtle.digest("SHA-256", late);
    structuredClone(late.buffer, { transfer: [late.buffer] });
    await key;
    await digest;
    return new Response(`${bytes.length} ${late.length}`);
  },
};
