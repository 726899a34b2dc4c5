interface Message {
  name: string;
  text: string;
}

const rooms = new Map<string, Set<WebSocket>>();

function join(room: string, server: WebSocket): void {
  const members = rooms.get(room) ?? new Set<WebSocket>();
  rooms.set(room, members);
  members.add(server);
  server.accept();
  server.addEventListener("message", (event: MessageEvent) => {
    let message: Message;
    try {
      message = JSON.parse(event.data as string);
    } catch {
      server.send(JSON.stringify({ error: "send JSON" }));
      return;
    }
    for (const member of members) member.send(JSON.stringify({ room, ...message }));
  });
  server.addEventListener("close", () => members.delete(server));
}

export default {
  async fetch(request: Request): Promise<Response> {
    if (request.headers.get("Upgrade") !== "websocket") {
      return new Response("Expected Upgrade: websocket", { status: 426 });
    }
    const room = new URL(request.url).pathname.split("/").pop() ?? "lobby";
    const [client, server] = Object.values(new WebSocketPair());
    join(room, server);
    return new Response(null, { status: 101, webSocket: client });
  },
};
