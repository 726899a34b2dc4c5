// Two ends of a socket answer each other for ever, even after their call has ended.
// expect: answer started or cpu
// limits: cpu_ms=100
// times: 3
export default {
  fetch() {
    const { 0: client, 1: server } = new WebSocketPair();
    server.accept();
    client.accept();
    client.addEventListener("message", () => client.send("x"));
    server.addEventListener("message", () => server.send("x"));
    server.send("x");
    return new Response("started");
  },
};
