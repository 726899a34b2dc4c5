// How a worker has the WebAssembly of sql.js: as an imported file, not as bytes. The glue code of Emscripten wants a location.
import wasm from "sql.js/dist/sql-wasm-browser.wasm";

globalThis.location ??= { href: "" };

export function instantiateWasm(imports, done) {
  WebAssembly.instantiate(wasm, imports).then((instance) => done(instance, wasm));
  return {};
}
