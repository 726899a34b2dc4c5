// What bench/r2_size.py asks for: one list, and how many objects and groups it found.
const QUERIES = {
  "/all": {},
  "/late": { startAfter: "dir-0900/0500" },
  "/metadata": { include: ["httpMetadata", "customMetadata"] },
  "/prefix": { prefix: "dir-0500/" },
  "/groups": { delimiter: "/" },
};

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const { objects, delimitedPrefixes } = await env.R2.list(QUERIES[pathname]);
    return new Response(`${objects.length + delimitedPrefixes.length}`);
  },
};
