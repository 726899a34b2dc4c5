export default defineEventHandler((event) => ({ greeting: event.context.cloudflare.env.GREETING }));
