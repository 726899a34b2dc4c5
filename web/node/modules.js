// The built-in modules a worker can import: `node:x`, or `x` if it deployed no module of that name, and `cloudflare:workers`.
//
// The bundler makes of each require() a module that runs when it is first asked for, so what nobody imports costs nothing.

const LOADERS = {
  assert: () => require("./assert.js"),
  "assert/strict": () => ({ ...require("./assert.js"), default: require("./assert.js").strict }),
  async_hooks: () => require("./async_hooks.js"),
  buffer: () => require("./buffer.js"),
  console: () => require("./console.js"),
  diagnostics_channel: () => require("./diagnostics_channel.js"),
  events: () => require("./events.js"),
  path: () => asDefault(require("./path.js").posix),
  "path/posix": () => asDefault(require("./path.js").posix),
  "path/win32": () => asDefault(require("./path.js").win32),
  perf_hooks: () => require("./perf_hooks.js"),
  process: () => require("./process.js"),
  punycode: () => require("./punycode.js"),
  querystring: () => require("./querystring.js"),
  "stream/web": () => require("./stream_web.js"),
  string_decoder: () => require("./string_decoder.js"),
  timers: () => require("./timers.js"),
  "timers/promises": () => require("./timers_promises.js"),
  url: () => require("./url.js"),
  util: () => require("./util_module.js"),
  "util/types": () => require("./util_types.js"),
};

// What Node has besides; named so that an import of one says what is the matter.
const MISSING = new Set([
  "child_process", "cluster", "constants", "crypto", "dgram", "dns", "dns/promises", "domain", "fs", "fs/promises", "http",
  "http2", "https", "inspector", "inspector/promises", "module", "net", "os", "readline", "readline/promises", "repl", "sea",
  "sqlite", "stream", "stream/consumers", "stream/promises", "sys", "test", "tls", "trace_events", "tty", "v8", "vm", "wasi",
  "worker_threads", "zlib",
]);

const made = new Map(); // name -> exports

function asDefault(module) {
  return { ...module, default: module };
}

/** `import x from` gives the module's own default, or all of it in one object. */
function withDefault(exports) {
  const all = { __proto__: null };
  for (const name of Object.keys(exports)) all[name] = exports[name];
  all.default ??= { ...exports };
  return all;
}

function loadNode(name) {
  let exports = made.get(name);
  if (exports === undefined) made.set(name, (exports = withDefault(LOADERS[name]())));
  return exports;
}

export function isBuiltIn(specifier) {
  return Object.hasOwn(LOADERS, specifier.replace(/^node:/, ""));
}

/** What `process.getBuiltinModule` gives: the module as `require` would. */
export function getBuiltIn(specifier) {
  const name = `${specifier}`.replace(/^node:/, "");
  return Object.hasOwn(LOADERS, name) ? loadNode(name).default : undefined;
}

/** For the engine: the exports of a built-in, a text that says why there is none, or undefined for what is none at all. */
export function builtIn(specifier) {
  if (specifier === "cloudflare:workers") return require("../worker/cloudflare_workers.js").exportsOf();
  const name = specifier.replace(/^node:/, "");
  if (Object.hasOwn(LOADERS, name)) return loadNode(name);
  const all = [...Object.keys(LOADERS).map((each) => `node:${each}`), "cloudflare:workers"].join(", ");
  if (name !== specifier || MISSING.has(name)) return `Atoll has no node:${name}; the built-in modules are ${all}`;
  return specifier.includes(":") ? `there is no such built-in module; there are ${all}` : undefined;
}
