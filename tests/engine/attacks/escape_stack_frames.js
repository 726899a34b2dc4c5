// Error.prepareStackTrace receives frames, with functions and objects of internal code.
// expect: answer found: 0
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const found = [];
    const look = (frames) => {
      for (const frame of frames) {
        const reached = [frame.getFunction?.(), frame.getThis?.()];
        if (`${frame.getFileName()}`.startsWith("atoll:") && reached.some((value) => value !== undefined && value !== globalThis)) found.push(String(frame));
      }
    };
    Error.prepareStackTrace = (error, frames) => {
      look(frames);
      return "";
    };
    const provoke = () => new Error("x").stack;
    new Headers({ get x() { return provoke() ?? "y"; } });
    new ReadableStream({ start: provoke, pull: provoke });
    queueMicrotask(provoke);
    setTimeout(provoke, 0);
    await new Promise((resolve) => setTimeout(resolve, 5));
    provoke();
    try {
      new Response("x", { status: 1 });
    } catch (error) {
      error.stack;
    }
    return new Response(`found: ${found.length}`);
  },
};
