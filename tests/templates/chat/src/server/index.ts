import { DurableObject } from "cloudflare:workers";
import type { ChatMessage } from "../shared";

export class Chat extends DurableObject<Env> {
  messages = [] as ChatMessage[];

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.ctx.storage.sql.exec(`CREATE TABLE IF NOT EXISTS messages (id TEXT PRIMARY KEY, user TEXT, role TEXT, content TEXT)`);
    this.messages = this.ctx.storage.sql.exec(`SELECT * FROM messages`).toArray() as ChatMessage[];
  }

  async fetch(request: Request) {
    if (request.headers.get("Upgrade") !== "websocket") return Response.json(this.messages);
    const { 0: client, 1: server } = new WebSocketPair();
    server.accept();
    server.addEventListener("message", (event) => {
      const { id, user, role, content } = JSON.parse(event.data as string) as ChatMessage;
      this.ctx.storage.sql.exec(`INSERT INTO messages (id, user, role, content) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET content = excluded.content`, id, user, role, content);
      server.send(JSON.stringify({ type: "update", id, user, role, content }));
    });
    return new Response(null, { status: 101, webSocket: client });
  }
}

export default {
  async fetch(request, env) {
    const room = new URL(request.url).pathname.split("/")[2] ?? "lobby";
    return env.Chat.get(env.Chat.idFromName(room)).fetch(request);
  },
} satisfies ExportedHandler<Env>;
