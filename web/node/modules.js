// The built-in modules that a worker can import: `node:x`, or `x` unless it deployed a module of that name, and those of
// Cloudflare. Each is loaded on first use.
import { lazy } from "../internal/lazy.js";

let table; // name -> function that returns the exports

// Created on first use, because its functions would otherwise be in every heap.
function loaders() {
  if (table !== undefined) return table;
  table = {
    assert: () => lazy("node/assert.js"),
    "assert/strict": () => ({ ...lazy("node/assert.js"), default: lazy("node/assert.js").strict }),
    async_hooks: () => lazy("node/async_hooks.js"),
    buffer: () => lazy("node/buffer.js"),
    console: () => lazy("node/console.js"),
    constants: () => ({ ...lazy("node/os.js").constants.signals, ...lazy("node/fs.js").constants }),
    crypto: () => lazy("node/crypto.js"),
    diagnostics_channel: () => lazy("node/diagnostics_channel.js"),
    dns: () => lazy("node/dns.js"),
    "dns/promises": () => lazy("node/dns_promises.js"),
    events: () => lazy("node/events.js"),
    fs: () => lazy("node/fs.js"),
    "fs/promises": () => asDefault(lazy("node/fs_promises.js").promises),
    http: () => lazy("node/http.js"),
    _http_agent: () => lazy("node/http_agent.js"),
    _http_client: () => lazy("node/http_client.js"),
    _http_common: () => lazy("node/http_common.js"),
    _http_incoming: () => lazy("node/http_incoming.js"),
    _http_outgoing: () => lazy("node/http_outgoing.js"),
    _http_server: () => lazy("node/http_server.js"),
    https: () => lazy("node/https.js"),
    module: () => lazy("node/module_module.js"),
    net: () => lazy("node/net.js"),
    os: () => lazy("node/os.js"),
    path: () => asDefault(lazy("node/path.js").posix),
    "path/posix": () => asDefault(lazy("node/path.js").posix),
    "path/win32": () => asDefault(lazy("node/path.js").win32),
    perf_hooks: () => lazy("node/perf_hooks.js"),
    process: () => lazy("node/process.js"),
    punycode: () => lazy("node/punycode.js"),
    querystring: () => lazy("node/querystring.js"),
    stream: () => lazy("node/stream.js"),
    "stream/consumers": () => lazy("node/stream_consumers.js"),
    "stream/promises": () => lazy("node/stream_promises.js"),
    "stream/web": () => lazy("node/stream_web.js"),
    string_decoder: () => lazy("node/string_decoder.js"),
    _tls_common: () => lazy("node/tls_context.js"),
    _tls_wrap: () => lazy("node/tls.js"),
    test: () => lazy("node/test_module.js"),
    timers: () => lazy("node/timers.js"),
    sys: () => lazy("node/util_module.js"),
    tls: () => lazy("node/tls.js"),
    "timers/promises": () => lazy("node/timers_promises.js"),
    tty: () => lazy("node/tty.js"),
    url: () => lazy("node/url.js"),
    util: () => lazy("node/util_module.js"),
    "util/types": () => lazy("node/util_types.js"),
    zlib: () => ({ ...lazy("node/zlib.js"), default: lazy("node/zlib_constants.js").withOldNames(lazy("node/zlib.js")) }),
  };
  // Modules that packages import but that throw when they are used.
  for (const name of [
    "child_process", "cluster", "dgram", "http2", "inspector", "readline", "repl", "v8", "vm",
    "worker_threads",
  ]) {
    table[name] = () => lazy("node/unavailable.js").makeUnavailable(name);
  }
  return table;
}

// Node's other modules, listed so that the import error can say that they are not supported.
const MISSING = new Set([
  "domain", "inspector/promises", "readline/promises", "sea", "sqlite", "trace_events", "wasi",
]);

const ELSEWHERE = /^(https?|data|file|blob|npm|jsr):/i;

const made = new Map(); // name -> exports

function asDefault(module) {
  return { ...module, default: module };
}

/** `import x from` returns the module's default export, or an object with all exports. */
function withDefault(exports) {
  const all = { __proto__: null };
  for (const name of Object.keys(exports)) all[name] = exports[name];
  all.default ??= { ...exports };
  return all;
}

function loadNode(name) {
  let exports = made.get(name);
  if (exports === undefined) made.set(name, (exports = withDefault(loaders()[name]())));
  return exports;
}

export function builtInNames() {
  return Object.keys(loaders());
}

export function isBuiltIn(specifier) {
  return Object.hasOwn(loaders(), specifier.replace(/^node:/, ""));
}

/** For `process.getBuiltinModule`: the module as `require` returns it. */
export function getBuiltIn(specifier) {
  const name = `${specifier}`.replace(/^node:/, "");
  return Object.hasOwn(loaders(), name) ? loadNode(name).default : undefined;
}

/** For the engine: the exports of a built-in module, a text with the reason why it is missing, or undefined for other names. */
export function builtIn(specifier) {
  if (specifier === "cloudflare:workers") return lazy("worker/cloudflare_workers.js").exportsOf();
  if (specifier === "cloudflare:node") return withDefault(lazy("node/cloudflare_node.js"));
  if (specifier === "cloudflare:sockets") return withDefault({ connect: lazy("sockets/tcp_socket.js").connect });
  const name = specifier.replace(/^node:/, "");
  if (Object.hasOwn(loaders(), name)) return loadNode(name);
  const all = [...Object.keys(loaders()).map((each) => `node:${each}`), "cloudflare:node", "cloudflare:workers", "cloudflare:sockets"].join(", ");
  if (name !== specifier || MISSING.has(name)) return `Atoll has no node:${name}; the built-in modules are ${all}`;
  if (ELSEWHERE.test(specifier)) return "modules are read from the deployment alone: put it into `modules`, or bundle it";
  return specifier.includes(":") ? `there is no such built-in module; there are ${all}` : undefined;
}
