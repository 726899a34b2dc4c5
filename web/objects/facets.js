// ctx.facets: child objects within an object, with databases of their own. They live and end with it.
// https://developers.cloudflare.com/dynamic-workers/usage/durable-object-facets/
//
// The object starts a facet by saying its class. Python opens it in the isolate of the object and knows it by the object and its
// name (atoll/bindings/durable_object/facets.py).
import { fetchFrom } from "#bindings/fetch/fetch.js";
import { cloneFacet, endFacet, reach } from "#bindings/rpc/rpc.js";
import { defineInterface } from "../internal/platform.js";
import { callOf } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { requireArguments, toDOMString } from "../internal/webidl.js";
import { runningCall } from "../worker/call.js";
import { cloneError } from "../rpc/errors.js";
import { ValueAnswer } from "../rpc/local.js";
import { classOf } from "../rpc/own_exports.js";
import { askEntrypoint } from "../rpc/service_stub.js";
import { EntrypointHandle, proxyOf } from "../rpc/stubs.js";
import { isDurableObjectId } from "./id.js";

const OURS = Symbol("ours");
const CLONED = "Facet was replaced by a clone.";
const MAX_DEPTH = 4; // with the outermost object
const MAX_NAME = 256;

/** A facet that runs, or is about to. */
class Running {
  #name;
  #options;
  #before; // settles when the facet of that name before this one is gone
  #started = null; // a promise of its address
  address = null;
  broken = null; // { error }
  held = null; // a promise while it is cloned: what it is asked then comes after that

  constructor(name, options, before) {
    this.#name = name;
    this.#options = options;
    this.#before = before;
  }

  start() {
    this.#started ??= this.#begin();
    return this.held === null ? this.#started : this.held.then(() => this.#started);
  }

  async #begin() {
    await this.#before;
    const options = await this.#options();
    const Class = classOf(options?.class);
    if (Class === undefined) {
      throw new TypeError("Incorrect type for the 'class' field on 'StartupOptions': the provided value is not of type 'DurableObjectClass'.");
    }
    const { id } = options;
    const shown = id === undefined || id === null ? {} : isDurableObjectId(id) ? { id: id.toString(), idName: id.name } : { id: `${id}` };
    if (this.broken !== null) throw this.broken.error;
    this.address = `facet ${JSON.stringify({ name: this.#name, class: Class.name, props: Class.props, ...shown })}`;
    return this.address;
  }

  check() {
    if (this.broken !== null) throw this.broken.error;
  }
}

class FacetHandle extends EntrypointHandle {
  #running;
  #onReset;

  constructor(running, onReset) {
    super();
    this.#running = running;
    this.#onReset = onReset;
  }

  async fetch(input, init) {
    this.#running.check();
    const address = await this.#running.start();
    return this.#watched(fetchFrom(address, input, init));
  }

  ask(path, args) {
    this.#running.check();
    const { address } = this.#running;
    if (address !== null && this.#running.held === null) {
      const question = askEntrypoint(reach, { name: address }, path, args);
      this.#watched(question.promise).catch(() => {});
      return question;
    }
    const promise = this.#running.start().then((name) => this.#watched(askEntrypoint(reach, { name }, path, args).promise));
    promise.catch(() => {});
    return new ValueAnswer(promise);
  }

  /** After a reset of the facet the next get() starts it anew. */
  #watched(promise) {
    return promise.catch((error) => {
      if (error?.durableObjectReset === true || error?.retryable === true) this.#onReset();
      throw error;
    });
  }

  get pass() {
    throw cloneError("Stubs pointing to Durable Object facets are not serializable.");
  }
}

export class DurableObjectFacets {
  #depth;
  #running = new Map(); // name -> Running
  #ends = new Map(); // name -> a promise that settles when what was done to the facet of that name is over; rejects if it is no clone

  constructor(key, depth) {
    if (key !== OURS) throw new TypeError("Illegal constructor");
    this.#depth = depth;
  }

  /** A stub of the facet; `getStartupOptions()` is called with its first use, if the facet does not run. */
  get(name, getStartupOptions) {
    requireArguments(arguments.length, 2, "get");
    const key = checkedName(name);
    if (typeof getStartupOptions !== "function") throw new TypeError("get: the second argument must be a function.");
    if (this.#depth + 2 > MAX_DEPTH) {
      throw new Error(`Facet nesting depth limit exceeded. The maximum depth including the root Durable Object is ${MAX_DEPTH}.`);
    }
    let running = this.#running.get(key);
    if (running === undefined) this.#running.set(key, (running = new Running(key, getStartupOptions, this.#ends.get(key))));
    const forget = () => {
      if (this.#running.get(key) === running) this.#running.delete(key);
    };
    running.start().catch(forget);
    return proxyOf(new FacetHandle(running, forget));
  }

  /** Stops the facet. Its calls, and later uses of its stubs, fail with `reason`. */
  abort(name, reason) {
    requireArguments(arguments.length, 2, "abort");
    this.#end(checkedName(name), reason instanceof Error ? reason : new Error(`${reason}`), false);
  }

  /** Stops the facet and deletes what it stored. */
  delete(name) {
    requireArguments(arguments.length, 1, "delete");
    this.#end(checkedName(name), new Error("Facet was deleted."), true);
  }

  /** Stops the facet `dst`, and gives it a copy of what `src` and the facets within have stored. `src` goes on. */
  clone(src, dst) {
    requireArguments(arguments.length, 2, "clone");
    const [name, to] = [checkedName(src), checkedName(dst)];
    if (name === to) throw new TypeError("A facet cannot be cloned onto itself.");
    this.#stop(to, new Error(CLONED));
    const cloned = Promise.all([this.#ends.get(name), this.#ends.get(to)?.catch(() => {})]).then(() => cloneFacet({ name, to }));
    const over = cloned.then(
      () => {},
      () => {},
    );
    const running = this.#running.get(name);
    if (running !== undefined) {
      running.held = over;
      over.then(() => {
        if (running.held === over) running.held = null;
      });
    }
    this.#keep(name, over);
    this.#keep(to, cloned);
    runningCall(callOf(native.getAsyncContext()))?.waitUntil(cloned);
  }

  #end(name, error, deletes) {
    this.#stop(name, error);
    const end = () => endFacet({ name, reason: error.message, deletes });
    const before = this.#ends.get(name);
    const ended = (before === undefined ? end() : before.then(end, end)).then(
      () => {},
      () => {},
    );
    this.#keep(name, ended);
  }

  #stop(name, error) {
    const running = this.#running.get(name);
    if (running !== undefined) running.broken = { error };
    this.#running.delete(name);
  }

  /** A facet that could not be cloned stays so until it is deleted: it must not look like one that is empty. */
  #keep(name, ended) {
    this.#ends.set(name, ended);
    ended.then(
      () => {
        if (this.#ends.get(name) === ended) this.#ends.delete(name);
      },
      () => {},
    );
  }
}

defineInterface(DurableObjectFacets, { name: "DurableObjectFacets" });

function checkedName(name) {
  const text = toDOMString(name);
  if (text === "") throw new TypeError("Facet name cannot be empty.");
  if (text.length > MAX_NAME) throw new TypeError(`Facet name is too long (max ${MAX_NAME} characters).`);
  return text;
}

export function makeFacets(host) {
  return new DurableObjectFacets(OURS, host.depth);
}
