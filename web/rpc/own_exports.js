// ctx.exports: the worker's own entry points, without a binding.
// https://developers.cloudflare.com/workers/runtime-apis/context/#exports
import { fetchFrom } from "#bindings/fetch/fetch.js";
import { ownFacts, ownNamespace } from "#bindings/durable_object/durable_object.js";
import { reach } from "#bindings/rpc/rpc.js";
import { isObjectClass } from "../objects/base.js";
import { macOf } from "../objects/id_digits.js";
import { isEntrypoint } from "../worker/handlers.js";
import { askEntrypoint } from "./service_stub.js";
import { cloneError } from "./errors.js";
import { EntrypointHandle, proxyOf } from "./stubs.js";

/** A stub of an own entry point. Called with { props }, it returns a stub whose calls have them as ctx.props. */
class ExportHandle extends EntrypointHandle {
  #entrypoint;
  #props;
  #name;

  constructor(entrypoint, props) {
    super();
    this.#entrypoint = entrypoint;
    this.#props = props;
    this.#name = `exports ${JSON.stringify({ entrypoint, props })}`;
  }

  fetch(input, init) {
    return fetchFrom(this.#name, input, init);
  }

  ask(path, args) {
    return askEntrypoint(reach, { name: this.#name }, path, args);
  }

  /** The text with which it is sent to another worker, see passes.js. */
  get pass() {
    const facts = ownFacts();
    if (facts === undefined) return undefined;
    const text = JSON.stringify([facts.worker, this.#entrypoint, this.#props]);
    return `pass export ${macOf(facts.key, text)} ${text}`;
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

/** A Durable Object class of this worker, for ctx.facets. */
class DurableObjectClass {
  constructor() {
    throw new TypeError("Illegal constructor");
  }
}

const classFacts = new WeakMap(); // DurableObjectClass -> { name, props }

/** { name, props } of a class that ctx.exports gave; undefined for any other value. */
export function classOf(value) {
  return typeof value === "function" || (typeof value === "object" && value !== null) ? classFacts.get(value) : undefined;
}

/** A class of own objects. It has the methods of its namespace, if it has one. Called with { props }, it gives its objects ctx.props. */
function makeClass(name, Class, namespace, props = {}) {
  const shown = namespace ?? DurableObjectClass.prototype;
  const made = new Proxy(function () {}, {
    get(target, key) {
      const value = Reflect.get(shown, key);
      return typeof value === "function" && namespace !== null && key !== "constructor" ? value.bind(namespace) : value;
    },
    has: (target, key) => key in shown,
    set: () => false,
    getPrototypeOf: () => Object.getPrototypeOf(namespace ?? shown),
    apply: (target, self, [options = {}]) => makeClass(name, Class, null, checkedProps(options.props)),
  });
  classFacts.set(made, { name, props });
  return made;
}

/** An object with a stub for each entry point among the exports of the main module, and a namespace for each class with objects. */
export function makeExports(exports) {
  const stubs = {};
  const classes = ownFacts()?.classes ?? {};
  for (const [name, value] of Object.entries(exports)) {
    if (Object.hasOwn(classes, name)) stubs[name] = makeClass(name, value, ownNamespace(classes[name]));
    else if (isObjectClass(value)) stubs[name] = makeClass(name, value, null);
    else if (isEntrypoint(value) || (typeof value === "object" && value !== null)) stubs[name] = makeExport(name === "default" ? null : name);
  }
  return stubs;
}
