// https://webassembly.github.io/spec/web-api/#streaming-modules
//
// V8 defines WebAssembly in every new isolate. The engine refuses to compile from bytes unless the worker may. Compilation is then
// synchronous: on V8's own threads it would be charged to no worker (engine/src/process/addon.cc). V8 does not count shared memory
// towards the heap limit, so it is counted here, and modules that define one are refused (engine/src/limits/wasm_bytes.h). Address
// space of memories and code of modules, which V8 does not count either, are counted as weights (engine/src/native/weights.h).
import { isResponse } from "./fetch/outgoing.js";
import { native } from "./internal/native.js";
import { copyBytes, isBufferSource } from "./internal/webidl.js";

/** https://webassembly.github.io/spec/web-api/#compile-a-potential-webassembly-response */
async function bytesOf(source, where) {
  const response = await source;
  if (!isResponse(response)) throw new TypeError(`${where}: the source is not a Response.`);
  if ((response.headers.get("content-type") ?? "").trim().toLowerCase() !== "application/wasm") {
    throw new TypeError(`${where}: the response is not of type application/wasm.`);
  }
  if (!response.ok) throw new TypeError(`${where}: the response has status ${response.status}.`);
  return response.arrayBuffer();
}

const { construct } = Reflect;
let waits = false;
let Instance = null; // as V8 made it
const MEMBERS = ["address", "index", "initial", "minimum"];
const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

/** Replaces `namespace[name]` by a constructor whose objects are made by `make(Original, arguments, new.target)`. */
function replaceConstructor(namespace, name, make) {
  const Original = namespace[name];
  const value = new Proxy(Original, { construct: make });
  const constructor = { value, writable: true, enumerable: false, configurable: true };
  Object.defineProperty(Original.prototype, "constructor", constructor);
  Object.defineProperty(namespace, name, constructor);
}

const PAGE = 65_536;
const counted = []; // buffers that stand for shared memory, which V8 does not count and whose release it does not report

/** https://webassembly.github.io/spec/js-api/#memories. Shared memory counts with its maximum size towards the limit, for good. */
function makeMemory(Original, given, newTarget) {
  const [descriptor] = given;
  if (!isObject(descriptor)) return construct(Original, given, newTarget); // which throws
  let maximum = 0;
  const reader = {
    // V8 reads this last, before it allocates anything.
    get shared() {
      const isShared = !!descriptor.shared;
      if (isShared) counted.push(new ArrayBuffer(Math.ceil(Number(maximum)) * PAGE));
      return isShared;
    },
    get maximum() {
      const value = descriptor.maximum;
      if (value !== undefined) maximum = typeof value === "bigint" ? value : Number(value);
      return value === undefined ? value : maximum;
    },
  };
  for (const name of MEMBERS) Object.defineProperty(reader, name, { get: () => descriptor[name] });
  const memory = construct(Original, [reader], newTarget);
  native.weighMemory(memory);
  return memory;
}

/** https://webassembly.github.io/spec/js-api/#instances */
function weighed(instance, module) {
  native.weighMemory(instance, module);
  return instance;
}

/** An instance of the HTML parser, independent of what a worker does to WebAssembly. */
export function instantiateParser(module, imports) {
  const instance = new Instance(module, imports);
  native.weighParser(instance);
  return instance.exports;
}

/** https://webassembly.github.io/spec/js-api/#modules */
function makeModule(Original, given, newTarget, CompileError) {
  if (!isBufferSource(given[0])) return construct(Original, given, newTarget);
  const bytes = copyBytes(given[0]);
  const refusal = native.refusalOfWasm(bytes);
  if (refusal !== undefined) throw new CompileError(`WebAssembly.Module(): the module ${refusal}.`);
  const module = construct(Original, [bytes], newTarget);
  native.weighModule(module);
  return module;
}

function requireBytes(bytes, where) {
  if (!isBufferSource(bytes)) throw new TypeError(`${where}: the argument is neither an ArrayBuffer nor a view of one.`);
}

/**
 * Called when an isolate gets its worker. A worker can use WebAssembly, or a module it imports, only through the global object
 * WebAssembly. Few workers do, so the setup waits for the first access.
 */
export function tameWebAssembly() {
  if (waits || !("WebAssembly" in globalThis)) return; // WebAssembly does not exist while the snapshot is made
  waits = true;
  const { WebAssembly } = globalThis;
  Instance = WebAssembly.Instance;
  delete WebAssembly.Module.prototype.constructor; // otherwise an imported module would give access to it
  native.defineLazyGlobal("WebAssembly", () => tame(WebAssembly));
}

function tame(WebAssembly) {
  replaceConstructor(WebAssembly, "Memory", makeMemory);
  const { CompileError } = WebAssembly;
  replaceConstructor(WebAssembly, "Module", (Original, given, newTarget) => makeModule(Original, given, newTarget, CompileError));
  replaceConstructor(WebAssembly, "Instance", (Original, given, newTarget) => weighed(construct(Original, given, newTarget), given[0]));
  const { Module, instantiate: instantiateOriginal } = WebAssembly;
  const instantiateModule = async (module, imports) => weighed(await instantiateOriginal(module, imports), module);
  const compile = async (bytes) => {
    requireBytes(bytes, "WebAssembly.compile");
    return new Module(bytes);
  };
  const instantiate = async (source, imports) => {
    if (imports !== undefined && !isObject(imports)) throw new TypeError("WebAssembly.instantiate: the imports are not an object.");
    if (source instanceof Module) return instantiateModule(source, imports);
    requireBytes(source, "WebAssembly.instantiate");
    const module = new Module(source);
    return { module, instance: await instantiateModule(module, imports) };
  };
  const functions = {
    compile(bytes) {
      return compile(bytes);
    },
    instantiate(source, imports = undefined) {
      return instantiate(source, imports);
    },
    async compileStreaming(source) {
      return compile(await bytesOf(source, "WebAssembly.compileStreaming"));
    },
    async instantiateStreaming(source, imports = undefined) {
      return instantiate(await bytesOf(source, "WebAssembly.instantiateStreaming"), imports);
    },
  };
  for (const [name, value] of Object.entries(functions)) {
    Object.defineProperty(WebAssembly, name, { value, writable: true, enumerable: true, configurable: true });
  }
  return WebAssembly;
}
