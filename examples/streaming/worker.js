// Streaming bodies: GET sends a line at intervals, POST returns the upload in capitals while it still arrives.
const encoder = new TextEncoder();

export default {
  fetch(request) {
    if (request.method === "POST") {
      return new Response(request.body?.pipeThrough(capitals()) ?? null);
    }
    const lines = Number(new URL(request.url).searchParams.get("lines") ?? 5);
    return new Response(slowly(lines), { headers: { "content-type": "text/plain; charset=utf-8" } });
  },
};

// Produces data only when its reader asks for it: a slow client slows the worker, and memory does not grow.
function slowly(lines) {
  let line = 0;
  return new ReadableStream({
    async pull(controller) {
      if (line === lines) return controller.close();
      await new Promise((wake) => setTimeout(wake, 200));
      line += 1;
      controller.enqueue(encoder.encode(`line ${line} of ${lines}\n`));
    },
  });
}

// Decodes bytes as a stream, so a character that is split between two chunks stays intact.
function capitals() {
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk.map((byte) => (byte >= 97 && byte <= 122 ? byte - 32 : byte)));
    },
  });
}
