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
    buffer: () => lazy("node/buffer_module.js").exported,
    child_process: () => lazy("node/child_process.js"),
    cluster: () => lazy("node/cluster.js"),
    console: () => lazy("node/console.js"),
    constants: () => lazy("node/constants.js").allConstants(),
    crypto: () => lazy("node/crypto.js"),
    dgram: () => lazy("node/dgram.js"),
    diagnostics_channel: () => lazy("node/diagnostics_channel.js"),
    dns: () => lazy("node/dns.js"),
    "dns/promises": () => lazy("node/dns_promises.js"),
    domain: () => lazy("node/domain.js"),
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
    http2: () => lazy("node/http2.js"),
    inspector: () => lazy("node/inspector.js"),
    "inspector/promises": () => lazy("node/inspector.js"),
    module: () => lazy("node/module_module.js"),
    net: () => lazy("node/net.js"),
    os: () => lazy("node/os.js"),
    path: () => asDefault(lazy("node/path.js").posix),
    "path/posix": () => asDefault(lazy("node/path.js").posix),
    "path/win32": () => asDefault(lazy("node/path.js").win32),
    perf_hooks: () => lazy("node/perf_hooks.js"),
    process: () => asDefault(lazy("node/process.js").default),
    punycode: () => lazy("node/punycode.js"),
    querystring: () => lazy("node/querystring.js"),
    readline: () => lazy("node/readline.js"),
    "readline/promises": () => asDefault(lazy("node/readline.js").promises),
    repl: () => lazy("node/repl.js"),
    sqlite: () => lazy("node/sqlite.js"),
    stream: () => lazy("node/stream.js"),
    "stream/consumers": () => lazy("node/stream_consumers.js"),
    "stream/promises": () => lazy("node/stream_promises.js"),
    "stream/web": () => lazy("node/stream_web.js"),
    _stream_duplex: () => one(lazy("node/stream.js").Duplex),
    _stream_passthrough: () => one(lazy("node/stream.js").PassThrough),
    _stream_readable: () => one(lazy("node/stream.js").Readable),
    _stream_transform: () => one(lazy("node/stream.js").Transform),
    _stream_wrap: () => lazy("node/stream_wrap.js"),
    _stream_writable: () => one(lazy("node/stream.js").Writable),
    string_decoder: () => lazy("node/string_decoder.js"),
    _tls_common: () => lazy("node/tls_context.js"),
    _tls_wrap: () => lazy("node/tls.js"),
    test: () => lazy("node/test_module.js"),
    timers: () => lazy("node/timers.js"),
    sys: () => lazy("node/util_module.js"),
    tls: () => lazy("node/tls.js"),
    "timers/promises": () => lazy("node/timers_promises.js"),
    trace_events: () => lazy("node/trace_events.js"),
    tty: () => lazy("node/tty.js"),
    url: () => lazy("node/url.js"),
    util: () => lazy("node/util_module.js"),
    "util/types": () => lazy("node/util_types.js"),
    v8: () => lazy("node/v8.js"),
    vm: () => lazy("node/vm.js"),
    wasi: () => lazy("node/wasi.js"),
    worker_threads: () => lazy("node/worker_threads.js"),
    zlib: () => ({ ...lazy("node/zlib.js"), default: lazy("node/zlib_constants.js").withOldNames(lazy("node/zlib.js")) }),
  };
  return table;
}

// A module of Node that is not here, listed so that the import error can say so.
const MISSING = new Set(["sea"]);

const ELSEWHERE = /^(https?|data|file|blob|npm|jsr):/i;

const made = new Map(); // name -> exports

function asDefault(module) {
  return { ...module, default: module };
}

/** A module that is one class. */
function one(value) {
  return { [value.name]: value, default: value };
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
  if (specifier === "cloudflare:email") return withDefault({ EmailMessage: lazy("email/email_message.js").EmailMessage });
  if (specifier === "cloudflare:workflows") return withDefault({ NonRetryableError: lazy("workflow/module.js").NonRetryableError });
  const name = specifier.replace(/^node:/, "");
  if (Object.hasOwn(loaders(), name)) return loadNode(name);
  const all = [...Object.keys(loaders()).map((each) => `node:${each}`), "cloudflare:node", "cloudflare:workers", "cloudflare:sockets", "cloudflare:email", "cloudflare:workflows"].join(", ");
  if (name !== specifier || MISSING.has(name)) return `Atoll has no node:${name}; the built-in modules are ${all}`;
  if (ELSEWHERE.test(specifier)) return "modules are read from the deployment alone: put it into `modules`, or bundle it";
  return specifier.includes(":") ? `there is no such built-in module; there are ${all}` : undefined;
}
