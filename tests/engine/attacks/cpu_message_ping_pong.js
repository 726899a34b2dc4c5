// Two ports that never stop talking.
// expect: cpu
export default {
  async fetch(request, env, ctx) {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => port1.postMessage(1);
    port2.onmessage = () => port2.postMessage(1);
    port1.postMessage(1);
    await new Promise(() => {});
  },
};
