export default defineNuxtConfig({
  compatibilityDate: "2025-10-01",
  telemetry: false,
  nitro: {
    preset: "cloudflare_module",
    cloudflare: { deployConfig: true, nodeCompat: true, wrangler: { name: "nuxt-app", vars: { GREETING: "Hello" } } },
  },
});
