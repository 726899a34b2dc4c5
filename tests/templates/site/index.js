// The shape of @cloudflare/kv-asset-handler: a manifest, a namespace, and the edge cache.
import { typeOf } from "./types.js";

addEventListener("fetch", (event) => event.respondWith(handle(event)));

async function handle(event) {
  const path = decodeURIComponent(new URL(event.request.url).pathname.slice(1)) || "index.html";
  const manifest = JSON.parse(__STATIC_CONTENT_MANIFEST);
  const body = path in manifest ? await __STATIC_CONTENT.get(manifest[path], "arrayBuffer") : null;
  if (body === null) return new Response(`no ${path}`, { status: 404 });
  return new Response(body, { headers: { "Content-Type": typeOf(path), ETag: `"${manifest[path]}"` } });
}
