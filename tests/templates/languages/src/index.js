import paths from "./paths.cjs";
import template from "./templates/page.js";

export default {
  async fetch(request) {
    const language = new URL(request.url).searchParams.get("lang") ?? "en";
    const { greeting } = await import(`./lang/${language}.js`);
    return new Response(`${template.trim()} ${greeting} ${paths.join("a", "b")}`);
  },
};
