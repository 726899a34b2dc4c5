import manifestJSON from "__STATIC_CONTENT_MANIFEST";

const manifest = JSON.parse(manifestJSON);

export default {
  async fetch(request, env) {
    const { value } = await env.__STATIC_CONTENT.getWithMetadata(manifest["index.html"]);
    return new Response(value + (await env.__STATIC_CONTENT.get("nothing")), { headers: { "Content-Type": "text/html" } });
  },
};
