// A service binding as a worker sees it: another worker, called without the network.
// https://developers.cloudflare.com/workers/runtime-apis/bindings/service-bindings/
import { fetchFrom } from "#bindings/fetch/fetch.js";
import { reach } from "#bindings/rpc/rpc.js";
import { lazy } from "#web/internal/lazy.js";
import { defineBinding } from "#web/internal/bindings.js";
import { native } from "#web/internal/native.js";
import { defineOp } from "#web/internal/ops.js";
import { defineInterface } from "#web/internal/platform.js";
import { ownMember } from "#web/worker/fetcher_members.js";

const call = defineOp("service.call");

// Names that are not forwarded to the other worker: `then` would make every binding a promise; the others have a meaning here, as
// do the names that every object has: without its own toString() a binding could not even be part of a message.
const OURS = new Set(["then", "catch", "finally", "toJSON", "dup", ...Object.getOwnPropertyNames(Object.prototype)]);

class Fetcher {
  #name; // of the binding; of a stub that another worker has sent, its pass
  #pass; // with which it is sent to other workers, see web/rpc/passes.js
  #handle = null;

  constructor(name, pass) {
    this.#name = name;
    this.#pass = pass;
  }

  fetch(input, init = undefined) {
    return fetchFrom(this.#name, input, init);
  }

  /** What its properties are properties of, see web/rpc/stubs.js. */
  static handleOf(fetcher) {
    const name = fetcher.#name;
    const [op, address, way] = name === fetcher.#pass ? [reach, { name }, undefined] : [call, { binding: name }, name];
    fetcher.#handle ??= { ask: (path, args) => lazy("rpc/service_stub.js").askEntrypoint(op, address, path, args, way) };
    return fetcher.#handle;
  }

  static passOf(fetcher) {
    return fetcher.#pass;
  }

  static is(value) {
    return #name in value;
  }
}

const { handleOf, is, passOf } = Fetcher;
delete Fetcher.handleOf;
delete Fetcher.is;
delete Fetcher.passOf;
defineInterface(Fetcher);

const METHODS = {
  get(fetcher, key) {
    if (key === "fetch") return (input, init) => fetcher.fetch(input, init);
    if (typeof key === "symbol" || OURS.has(key)) return Reflect.get(fetcher, key);
    const own = ownMember(fetcher, key);
    return own === null ? lazy("rpc/stubs.js").makeProperty(handleOf(fetcher), [key]) : own.value;
  },
  set() {
    return false;
  },
};

/** env.NAME: every property but fetch is a method or a property of the other worker. */
export class Service {
  constructor(name, facts = undefined) {
    return new Proxy(new Fetcher(name, facts?.pass), METHODS);
  }
}

/** The stub of an object or entry point that another worker has sent. */
export function makeFetcher(pass) {
  return new Proxy(new Fetcher(pass, pass), METHODS);
}

/** The text with which a service binding is sent to another worker. */
export function passOfService(service) {
  return passOf(native.proxyTarget(service));
}

/** Whether a value is a service binding, or a stub that another worker has sent. */
export function isService(value) {
  if (typeof value !== "object" || value === null || !native.isProxy(value)) return false;
  const target = native.proxyTarget(value);
  return target !== null && is(target);
}

defineBinding("service", Service);
