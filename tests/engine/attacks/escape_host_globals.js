// Looks for leftovers of the host.
// expect: answer found: 
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const names = ["require", "module", "exports", "__dirname", "Deno", "Bun", "internalBinding", "primordials", "native", "v8", "d8", "gc",
      "load", "read", "print", "quit", "Worker", "importScripts", "SharedArrayBuffer", "__proto__native"];
    const found = names.filter((name) => name in globalThis);
    if (globalThis.process) {
      const { process } = globalThis;
      if (process.mainModule) found.push("mainModule");
      for (const name of ["binding", "dlopen", "_linkedBinding", "kill", "_kill", "execve"]) { // as on Cloudflare, they only throw
        try {
          process[name]?.("fs", 9);
          if (name in process) found.push(name);
        } catch {}
      }
      found.push(...Object.keys(process.env));
      if (process.argv.length > 0 && process.argv.some((word) => word.includes("/"))) found.push("argv");
    }
    return new Response(`found: ${found}`);
  },
};
