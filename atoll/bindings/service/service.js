// A service binding as a worker sees it: another worker, called without the network.
// https://developers.cloudflare.com/workers/runtime-apis/bindings/service-bindings/
import { fetchFrom } from "#bindings/fetch/fetch.js";
import { lazy } from "#web/internal/lazy.js";
import { defineBinding } from "#web/internal/bindings.js";
import { defineOp } from "#web/internal/ops.js";
import { defineInterface } from "#web/internal/platform.js";
import { makeProperty, OURS, toRpcPromise } from "./rpc_promise.js";

const call = defineOp("service.call");
const NOTHING = new Uint8Array(0); // in place of arguments: the property is read, not called

async function callMethod(binding, method, args) {
  const { readValue, writeValue } = lazy("worker/parcel.js");
  const written = args === null ? { bytes: NOTHING, pipes: [] } : writeValue(args);
  const { bytes, pipes } = written instanceof Promise ? await written : written;
  const { meta, body } = await call({ binding, method, pipes: pipes.length > 0 ? pipes : undefined }, bytes);
  if (meta.thrown === undefined) return readValue(body);
  throw lazy("worker/thrown.js").makeThrown(meta.thrown);
}

class Fetcher {
  #name;

  constructor(name) {
    this.#name = name;
  }

  fetch(input, init = undefined) {
    return fetchFrom(this.#name, input, init);
  }

  static nameOf(fetcher) {
    return fetcher.#name;
  }
}

const nameOf = Fetcher.nameOf;
delete Fetcher.nameOf;
defineInterface(Fetcher);

const METHODS = {
  get(fetcher, key) {
    if (key === "fetch") return (input, init) => fetcher.fetch(input, init);
    if (typeof key === "symbol" || OURS.has(key)) return Reflect.get(fetcher, key);
    const binding = nameOf(fetcher);
    return makeProperty([key], () => callMethod(binding, key, null), (args) => toRpcPromise(callMethod(binding, key, args)));
  },
  set() {
    return false;
  },
};

/** env.NAME: every property but fetch is a method or a property of the other worker. */
export class Service {
  constructor(name) {
    return new Proxy(new Fetcher(name), METHODS);
  }
}

defineBinding("service", Service);
