// Chat rooms whose WebSockets hibernate. Each room is a Durable Object: while nobody speaks, it is not in memory, and its
// sockets stay open. What was said is in its storage, and the name of each guest is attached to the socket.
import { DurableObject } from "cloudflare:workers";

const HISTORY = 50;

const page = `<!doctype html>
<meta charset="utf-8">
<title>Chat</title>
<style>
  body { font: 16px system-ui; max-width: 40rem; margin: 2rem auto; }
  #log { height: 60vh; overflow: auto; border: 1px solid #ccc; padding: 1rem; }
</style>
<div id="log"></div>
<form><input autofocus size="40" placeholder="say something"> <button>Send</button></form>
<script>
  const name = prompt("Your name?") || "somebody";
  const socket = new WebSocket(location.href.split("?")[0].replace("http", "ws") + "?name=" + encodeURIComponent(name));
  const line = (text) => log.append(Object.assign(document.createElement("p"), { textContent: text }));
  socket.onmessage = ({ data }) => data === "pong" || line(data);
  socket.onclose = ({ code }) => line("closed " + code);
  setInterval(() => socket.readyState === WebSocket.OPEN && socket.send("ping"), 30_000);
  document.forms[0].onsubmit = (event) => {
    event.preventDefault();
    const input = document.querySelector("input");
    socket.send(input.value);
    input.value = "";
  };
</script>
`;

export class Room extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS lines (id INTEGER PRIMARY KEY, text TEXT)");
    // The page pings every 30 seconds. The answer comes without waking the room up.
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  }

  fetch(request) {
    const name = new URL(request.url).searchParams.get("name") || "somebody";
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server, [name]);
    server.serializeAttachment({ name });
    for (const { text } of this.ctx.storage.sql.exec("SELECT text FROM (SELECT * FROM lines ORDER BY id DESC LIMIT ?) ORDER BY id", HISTORY)) {
      server.send(text);
    }
    this.say(`${name} joined, ${this.ctx.getWebSockets().length} here`);
    return new Response(null, { status: 101, webSocket: client });
  }

  webSocketMessage(ws, message) {
    const { name } = ws.deserializeAttachment();
    const text = `${name}: ${message}`;
    this.ctx.storage.sql.exec("INSERT INTO lines (text) VALUES (?)", text);
    this.say(text);
  }

  webSocketClose(ws) {
    this.say(`${ws.deserializeAttachment().name} left`, ws);
  }

  say(text, except) {
    for (const each of this.ctx.getWebSockets()) if (each !== except && each.readyState === WebSocket.OPEN) each.send(text);
  }
}

export default {
  fetch(request, env) {
    const room = new URL(request.url).pathname.slice(1) || "lobby";
    if (request.headers.get("Upgrade") === "websocket") return env.ROOMS.getByName(room).fetch(request);
    return new Response(page, { headers: { "content-type": "text/html;charset=utf-8" } });
  },
};
