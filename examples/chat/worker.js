// A chat room: a page, and a WebSocket for everyone who has it open. The room is in the memory of one isolate.
const everyone = new Set();

const page = `<!doctype html><meta charset="utf-8"><title>Chat</title>
<style>body{font:16px system-ui;max-width:40rem;margin:2rem auto}#log{height:60vh;overflow:auto;border:1px solid #ccc;padding:1rem}</style>
<div id="log"></div><form><input autofocus size="40" placeholder="say something"> <button>Send</button></form>
<script>
const socket = new WebSocket(location.href.replace("http", "ws"));
const line = (text) => log.append(Object.assign(document.createElement("p"), { textContent: text }));
socket.onmessage = ({ data }) => line(data);
socket.onclose = ({ code }) => line("closed " + code);
document.forms[0].onsubmit = (event) => {
  event.preventDefault();
  const input = document.querySelector("input");
  socket.send(input.value);
  input.value = "";
};
</script>`;

export default {
  fetch(request) {
    if (request.headers.get("Upgrade") !== "websocket") {
      return new Response(page, { headers: { "content-type": "text/html;charset=utf-8" } });
    }
    const { 0: client, 1: server } = new WebSocketPair();
    server.accept();
    everyone.add(server);
    server.send(`welcome, ${everyone.size} here`);
    server.addEventListener("message", ({ data }) => {
      for (const each of everyone) each.send(data);
    });
    server.addEventListener("close", () => everyone.delete(server));
    return new Response(null, { status: 101, webSocket: client });
  },
};
