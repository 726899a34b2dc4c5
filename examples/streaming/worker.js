// Bodies that flow: GET sends a line now and then, POST gives the upload back in capitals while it still arrives.
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

// A stream that asks for nothing until its reader does: a slow client slows the worker, and no memory grows.
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

// Works on bytes, so a character cut in two between chunks comes out whole.
function capitals() {
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk.map((byte) => (byte >= 97 && byte <= 122 ? byte - 32 : byte)));
    },
  });
}
