/**
 * A job by the clock: each run writes a report, old ones go, and `GET /` lists what is there.
 */
import { nanoid } from "nanoid";

interface Env {
  REPORTS: KVNamespace;
  KEEP: number;
}

interface Report {
  id: string;
  cron: string;
  at: string;
}

export default {
  async scheduled(controller, env, ctx): Promise<void> {
    const at = new Date(controller.scheduledTime).toISOString();
    const report: Report = { id: nanoid(8), cron: controller.cron, at };
    await env.REPORTS.put(`report:${at}`, JSON.stringify(report), { metadata: { cron: controller.cron } });
    ctx.waitUntil(forgetOld(env));
    console.log(`report of ${controller.cron} written`);
  },

  async fetch(request, env): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname !== "/") {
      const report = await env.REPORTS.get<Report>(`report:${decodeURIComponent(pathname.slice(1))}`, "json");
      return report ? Response.json(report) : new Response("Not found", { status: 404 });
    }
    const { keys } = await env.REPORTS.list<{ cron: string }>({ prefix: "report:" });
    return Response.json(keys.map((key) => ({ name: key.name, cron: key.metadata?.cron })));
  },
} satisfies ExportedHandler<Env>;

async function forgetOld(env: Env): Promise<void> {
  const { keys } = await env.REPORTS.list({ prefix: "report:" });
  await Promise.all(keys.slice(0, -env.KEEP).map((key) => env.REPORTS.delete(key.name)));
}
