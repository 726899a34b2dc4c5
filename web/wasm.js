// https://webassembly.github.io/spec/web-api/#streaming-modules
//
// V8 installs WebAssembly itself, in every isolate anew, but for these two functions. Compiling from bytes is refused by the
// engine; they go the same way, so that what they say is the same.
import { isResponse } from "./fetch/outgoing.js";

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

/** Called when an isolate gets its worker. */
export function installStreaming(WebAssembly) {
  const { compile, instantiate } = WebAssembly;
  const functions = {
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
}
