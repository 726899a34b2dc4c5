// Sends to, accepts and closes sockets of a pair and of other calls, twice and after their end.
// expect: answer survived
// times: 4
// limits: cpu_ms=2000
let kept = [];
export default {
  async fetch(request, env) {
    for (const socket of kept) {
      for (const act of [() => socket.send("x"), () => socket.accept(), () => socket.send(new ArrayBuffer(1 << 16)), () => socket.close(1000, "y".repeat(200)), () => socket.close(), () => socket.send("late")]) {
        try {
          act();
        } catch {
          continue;
        }
      }
    }
    const { 0: client, 1: server } = new WebSocketPair();
    server.accept();
    let turns = 0;
    client.addEventListener("message", () => ++turns < 100 && client.send("back"));
    server.addEventListener("message", () => ++turns < 100 && server.send("forth"));
    client.accept();
    kept = [client, server, new WebSocketPair()[0]];
    server.send("start");
    await env.ECHO.say({});
    return new Response("survived");
  },
};
