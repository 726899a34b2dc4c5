// ctx.exports: the worker's own entry points, without a binding.
// https://developers.cloudflare.com/workers/runtime-apis/context/#exports
import { fetchFrom } from "#bindings/fetch/fetch.js";
import { callExport } from "#bindings/rpc/rpc.js";
import { isEntrypoint } from "../worker/handlers.js";
import { askEntrypoint } from "./service_stub.js";
import { cloneError } from "./errors.js";
import { EntrypointHandle, proxyOf } from "./stubs.js";

/** A stub of an own entry point. Called with { props }, it returns a stub whose calls have them as ctx.props. */
class ExportHandle extends EntrypointHandle {
  #entrypoint;
  #name;

  constructor(entrypoint, props) {
    super();
    this.#entrypoint = entrypoint;
    this.#name = `exports ${JSON.stringify({ entrypoint, props })}`;
  }

  fetch(input, init) {
    return fetchFrom(this.#name, input, init);
  }

  ask(path, args) {
    return askEntrypoint(callExport, { export: this.#name }, path, args);
  }

  apply(target, self, [options = {}]) {
    return makeExport(this.#entrypoint, checkedProps(options.props));
  }
}

function checkedProps(props = {}) {
  if (typeof props !== "object" || props === null || Array.isArray(props)) throw new TypeError("`props` is not an object.");
  const text = JSON.stringify(props, (key, value) => {
    if (["function", "symbol", "bigint"].includes(typeof value)) throw cloneError(`\`props\` must be JSON: "${key}" is a ${typeof value}.`);
    return value;
  });
  return JSON.parse(text);
}

function makeExport(entrypoint, props = {}) {
  return proxyOf(new ExportHandle(entrypoint, props));
}

/** An object with a stub for each entry point among the exports of the main module. */
export function makeExports(exports) {
  const stubs = {};
  for (const [name, value] of Object.entries(exports)) {
    if (isEntrypoint(value) || (typeof value === "object" && value !== null)) stubs[name] = makeExport(name === "default" ? null : name);
  }
  return stubs;
}
