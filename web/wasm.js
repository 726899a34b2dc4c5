// https://webassembly.github.io/spec/web-api/#streaming-modules
//
// V8 installs WebAssembly itself, in every isolate anew. Compiling from bytes is refused by the engine unless the worker may;
// then it is done on the spot, because V8's own threads would do it at nobody's expense. Memory to share with other threads is
// refused here.
import { isResponse } from "./fetch/outgoing.js";
import { native } from "./internal/native.js";

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
const DESCRIPTOR = ["address", "index", "initial", "minimum", "maximum"];

/** https://webassembly.github.io/spec/js-api/#memories, of one thread only. */
function refuseShared(WebAssembly) {
  const Original = WebAssembly.Memory;
  function Memory(descriptor) {
    if (new.target === undefined) throw new TypeError("WebAssembly.Memory must be invoked with 'new'");
    if (typeof descriptor !== "object" || descriptor === null) return construct(Original, [descriptor]);
    if (descriptor.shared) throw new TypeError("WebAssembly.Memory: shared memory is not available, since there are no threads.");
    const copy = {}; // whose getters cannot say something else the second time
    for (const name of DESCRIPTOR) if (descriptor[name] !== undefined) copy[name] = descriptor[name];
    return construct(Original, [copy], new.target);
  }
  Object.defineProperty(Memory, "prototype", { value: Original.prototype, writable: false });
  const constructor = { value: Memory, writable: true, enumerable: false, configurable: true };
  Object.defineProperty(Original.prototype, "constructor", constructor);
  Object.defineProperty(WebAssembly, "Memory", constructor);
}

/**
 * Called when an isolate gets its worker. Until that looks at WebAssembly it cannot do anything with it, not even with a module
 * it imports; few do, so all this waits until then.
 */
export function tameWebAssembly() {
  if (waits || !("WebAssembly" in globalThis)) return; // there is none while the snapshot is made
  waits = true;
  const { WebAssembly } = globalThis;
  native.defineLazyGlobal("WebAssembly", () => tame(WebAssembly));
}

function tame(WebAssembly) {
  refuseShared(WebAssembly);
  const { Module, instantiate: instantiateModule } = WebAssembly;
  const compile = async (bytes) => new Module(bytes);
  const instantiate = async (source, imports) => {
    if (source instanceof Module) return instantiateModule(source, imports);
    const module = await compile(source);
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
