// A file store: PUT a file, GET it with ranges and conditions, DELETE it, and list a folder with a path that ends in a slash.
export default {
  async fetch(request, env) {
    const key = decodeURIComponent(new URL(request.url).pathname.slice(1));
    if (request.method === "PUT") return put(env.FILES, key, request);
    if (request.method === "DELETE") {
      await env.FILES.delete(key);
      return new Response(null, { status: 204 });
    }
    return key === "" || key.endsWith("/") ? list(env.FILES, key) : get(env.FILES, key, request);
  },
};

async function put(files, key, request) {
  const { size, httpEtag } = await files.put(key, request.body, { httpMetadata: request.headers });
  return new Response(`stored ${size} bytes\n`, { status: 201, headers: { etag: httpEtag } });
}

async function get(files, key, request) {
  const object = await files.get(key, { range: request.headers, onlyIf: request.headers });
  if (object === null) return new Response("there is no such file\n", { status: 404 });
  const headers = new Headers({ etag: object.httpEtag, "accept-ranges": "bytes" });
  object.writeHttpMetadata(headers);
  if (!("body" in object)) {
    const isCached = request.headers.has("if-none-match") || request.headers.has("if-modified-since");
    return new Response(null, { status: isCached ? 304 : 412, headers });
  }
  const { offset, length } = object.range;
  const isPart = length < object.size;
  if (isPart) headers.set("content-range", `bytes ${offset}-${offset + length - 1}/${object.size}`);
  return new Response(object.body, { status: isPart ? 206 : 200, headers });
}

async function list(files, prefix) {
  const { objects, delimitedPrefixes } = await files.list({ prefix, delimiter: "/" });
  return Response.json({ folders: delimitedPrefixes, files: objects.map(({ key, size }) => ({ key, size })) });
}
