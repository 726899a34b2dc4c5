// Runs every five minutes, and shows when it last ran. `atoll dev` runs it on schedule too, and at once with the key t.
export default {
  async scheduled(controller, env) {
    await env.RUNS.put("last", new Date(controller.scheduledTime).toISOString());
  },

  async fetch(request, env) {
    return new Response(`last run: ${(await env.RUNS.get("last")) ?? "never"}\n`);
  },
};
