// Thousands of signals, ports, channels and intervals of ended calls, each with a listener that creates another.
// expect: answer left or memory
// limits: cpu_ms=2000 memory_mb=64
// times: 5
export default {
  fetch(request, env, ctx) {
    for (let i = 0; i < 2000; i++) {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => port1.postMessage(1);
      port2.onmessage = () => port2.postMessage(1);
      AbortSignal.timeout(1).addEventListener("abort", () => AbortSignal.timeout(1));
      request.signal.addEventListener("abort", () => fetch("http://victim.localhost/"));
      setInterval(() => setInterval(() => {}, 0), 0);
      port1.postMessage(0);
    }
    return new Response("left");
  },
};
