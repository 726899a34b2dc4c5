// A rate limiter that counts exactly: one Durable Object for each client keeps the times of its last requests in a table.
import { DurableObject } from "cloudflare:workers";

const LIMIT = 5;
const WINDOW_MS = 10_000;

export class Limiter extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS requests (at INTEGER NOT NULL)");
  }

  /** Counts a request. Returns 0 if it may pass, or the milliseconds until the next one may. */
  take() {
    const { sql } = this.ctx.storage;
    const now = Date.now();
    sql.exec("DELETE FROM requests WHERE at <= ?", now - WINDOW_MS);
    const { count, oldest } = sql.exec("SELECT count(*) AS count, min(at) AS oldest FROM requests").one();
    if (count >= LIMIT) return oldest + WINDOW_MS - now;
    sql.exec("INSERT INTO requests VALUES (?)", now);
    return 0;
  }
}

export default {
  async fetch(request, env) {
    const client = request.headers.get("x-client") ?? "anonymous";
    const wait = await env.LIMITER.getByName(client).take();
    if (wait === 0) return new Response(`hello ${client}\n`);
    const seconds = `${Math.ceil(wait / 1000)}`;
    return new Response(`${client} asks too often\n`, { status: 429, headers: { "retry-after": seconds } });
  },
};
