// Imports modules that belong to the host.
// expect: answer found: 
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const found = [];
    for (const name of ["fs", "node:fs", "node:child_process", "node:net", "node:vm", "node:worker_threads", "node:v8", "file:///etc/passwd",
      "/etc/passwd", "../../../../etc/passwd", "http://localhost/x.js", "data:text/javascript,export default 1", "atoll:web", "internal/native"]) {
      try {
        const module = await import(name);
        if (module.readFileSync?.("/etc/passwd") || module.default === 1) found.push(name);
      } catch {
        continue;
      }
    }
    return new Response(`found: ${found}`);
  },
};
