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
      for (const name of ["binding", "dlopen", "mainModule", "_linkedBinding", "kill", "report"]) if (process[name]) found.push(name);
      found.push(...Object.keys(process.env));
      if (process.argv.length > 0 && process.argv.some((word) => word.includes("/"))) found.push("argv");
    }
    return new Response(`found: ${found}`);
  },
};
