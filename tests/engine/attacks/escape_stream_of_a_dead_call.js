// Other calls read, pipe, cancel and answer with bodies and signals of a call that has ended.
// expect: answer kept or answer survived
// times: 4
// body: 300000
// limits: cpu_ms=2000
let kept = null;
export default {
  async fetch(request, env, ctx) {
    if (kept === null) {
      const { readable, writable } = new TransformStream();
      kept = { request, writer: writable.getWriter(), readable, reader: request.body.getReader(), response: new Response("x") };
      await kept.reader.read();
      return new Response("kept");
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
    const tries = [
      () => kept.reader.read(),
      () => kept.reader.cancel("mine"),
      () => kept.request.text(),
      () => kept.request.clone(),
      () => kept.readable.pipeTo(new WritableStream()),
      () => kept.writer.write(new Uint8Array(10)),
      () => new Response(kept.readable).text(),
      () => kept.request.signal.throwIfAborted(),
      () => fetch(kept.request),
      () => env.ECHO.say(kept.request),
    ];
    await Promise.all(
      tries.map(async (attempt) => {
        try {
          await Promise.race([attempt(), new Promise((resolve) => setTimeout(resolve, 20))]);
        } catch {
          return;
        }
      }),
    );
    return new Response("survived");
  },
};
