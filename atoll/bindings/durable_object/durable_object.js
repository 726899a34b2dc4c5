// A Durable Object namespace as a worker sees it: https://developers.cloudflare.com/durable-objects/api/namespace/
import { fetchFrom } from "#bindings/fetch/fetch.js";
import { reach } from "#bindings/rpc/rpc.js";
import { defineBinding } from "#web/internal/bindings.js";
import { lazy } from "#web/internal/lazy.js";
import { native } from "#web/internal/native.js";
import { defineOp } from "#web/internal/ops.js";
import { defineInterface } from "#web/internal/platform.js";
import { requireArguments, toDOMString } from "#web/internal/webidl.js";
import { isOn } from "#web/worker/compatibility.js";
import { URL } from "#web/url/url.js";
import { isDurableObjectId, isProvenBy, makeId } from "#web/objects/id.js";
import { hexOfName, hexOfPrefix, isHexOf, jurisdictionOf, macOf, randomHex } from "#web/objects/id_digits.js";
import { ownFactsOf } from "#web/worker/env.js";
import { ownMember } from "#web/worker/fetcher_members.js";

const call = defineOp("durable_object.call");
const FAKE_HOST = "https://fake-host/"; // what URLs were relative to before 2021-11-10
const JURISDICTIONS = ["eu", "fedramp", "fedramp-high", "us"];

// Names that are not forwarded to the object, as for service bindings.
const OURS = new Set(["then", "catch", "finally", "toJSON", "dup", ...Object.getOwnPropertyNames(Object.prototype)]);

class DurableObjectStub {
  #id;
  #target;
  #key; // [namespace, key], to send the stub to other workers
  #pass = undefined;
  #handle = null;
  #broken = null; // { error } once its object was reset, or the connection to it was lost: every later call fails with it

  /** `binding` is null for an object of an own class that was found by ctx.exports. */
  constructor(binding, id, key) {
    this.#id = id;
    this.#target = { binding, id: id.toString(), object: id.name };
    this.#key = key;
  }

  get id() {
    return this.#id;
  }

  get name() {
    return this.#id.name;
  }

  fetch(input, init = undefined) {
    const { binding, id, object } = this.#target;
    if (this.#broken !== null) return Promise.reject(this.#broken.error);
    const target = typeof input === "string" && !isOn("durable_object_fetch_requires_full_url") ? `${new URL(input, FAKE_HOST)}` : input;
    if (binding === null) return fetchFrom(passOf(this), target, init);
    return fetchFrom(binding, target, init, { id, name: object, onThrown: this.#note });
  }

  #note = (error) => {
    if (error.durableObjectReset === true || error.retryable === true) this.#broken ??= { error };
  };

  /** What its properties are properties of, see web/rpc/stubs.js. */
  static handleOf(stub) {
    if (stub.#handle !== null) return stub.#handle;
    const { binding, id } = stub.#target;
    const [op, address, way] = binding === null ? [reach, { name: passOf(stub) }, undefined] : [call, stub.#target, `${binding} ${id}`];
    const fail = () => Promise.reject(stub.#broken.error);
    stub.#handle = {
      ask: (path, args) => {
        const { askEntrypoint } = lazy("rpc/service_stub.js");
        return stub.#broken === null ? askEntrypoint(op, address, path, args, way, stub.#note) : askEntrypoint(fail, address, path, args, undefined, stub.#note);
      },
    };
    return stub.#handle;
  }

  /** The text with which the stub is sent to another worker, see web/rpc/passes.js. */
  static passOf(stub) {
    if (stub.#pass !== undefined || stub.#key === undefined) return stub.#pass;
    const [namespace, key] = stub.#key;
    const text = JSON.stringify([namespace, stub.#target.id, stub.#target.object ?? null]);
    stub.#pass = `pass object ${macOf(key, text)} ${text}`;
    return stub.#pass;
  }

  static is(value) {
    return #target in value;
  }
}

const { handleOf, is, passOf } = DurableObjectStub;
delete DurableObjectStub.handleOf;
delete DurableObjectStub.is;
delete DurableObjectStub.passOf;
defineInterface(DurableObjectStub);

const MEMBERS = {
  get(stub, key) {
    if (key === "fetch") return (input, init) => stub.fetch(input, init);
    if (key === "id") return stub.id;
    if (key === "name") return stub.name;
    if (Object.hasOwn(stub, key)) return stub[key];
    if (typeof key === "symbol" || OURS.has(key)) return Reflect.get(stub, key);
    const own = ownMember(stub, key);
    return own === null ? lazy("rpc/stubs.js").makeProperty(handleOf(stub), [key]) : own.value;
  },
  set(stub, key, value) {
    if (key === "id" || key === "name" || key === "fetch") return false;
    return Reflect.defineProperty(stub, key, { value, writable: true, enumerable: true, configurable: true });
  },
  ownKeys(stub) {
    return ["id", "name", ...Reflect.ownKeys(stub)];
  },
  getOwnPropertyDescriptor(stub, key) {
    if (key !== "id" && key !== "name") return Reflect.getOwnPropertyDescriptor(stub, key);
    return { value: stub[key], writable: false, enumerable: true, configurable: true };
  },
};

function checkJurisdiction(name) {
  if (!JURISDICTIONS.includes(name)) throw new TypeError(`jurisdiction: the jurisdiction "${name}" is not one of ${JURISDICTIONS.join(", ")}.`);
  return name;
}

class DurableObjectNamespace {
  #binding;
  #keys; // hexadecimal, by jurisdiction; "" is that of the namespace itself
  #facts; // { keys, pass }
  #jurisdiction;

  constructor(binding, facts, jurisdiction = "") {
    this.#binding = binding;
    this.#facts = facts;
    this.#keys = facts?.keys ?? {};
    this.#jurisdiction = jurisdiction;
  }

  #key(jurisdiction) {
    return this.#keys[jurisdiction];
  }

  newUniqueId(options = undefined) {
    const wanted = options?.jurisdiction;
    const jurisdiction = wanted === undefined || wanted === null ? this.#jurisdiction : checkJurisdiction(toDOMString(wanted));
    if (this.#jurisdiction !== "" && jurisdiction !== this.#jurisdiction) {
      throw new TypeError("newUniqueId called on jurisdictional subnamespace with a different jurisdiction");
    }
    const key = this.#key(jurisdiction);
    return makeId(hexOfPrefix(key, randomHex()), undefined, jurisdiction || undefined, key);
  }

  idFromName(name) {
    requireArguments(arguments.length, 1, "idFromName");
    const text = toDOMString(name);
    const key = this.#key(this.#jurisdiction);
    return makeId(hexOfName(key, text), text, this.#jurisdiction || undefined, key);
  }

  idFromString(text) {
    requireArguments(arguments.length, 1, "idFromString");
    const hex = toDOMString(text);
    if (!/^[0-9a-fA-F]{64}$/.test(hex)) throw new TypeError("Invalid Durable Object ID: must be 64 hex digits");
    const lower = hex.toLowerCase();
    const jurisdiction = jurisdictionOf(this.#keys, lower);
    if (jurisdiction === undefined) throw new TypeError("Durable Object ID is not valid for this namespace.");
    if (this.#jurisdiction !== "" && jurisdiction !== this.#jurisdiction) {
      throw new TypeError("idFromString called on jurisdictional subnamespace with an ID from a different jurisdiction");
    }
    return makeId(lower, undefined, jurisdiction || undefined, this.#key(jurisdiction));
  }

  get(id, options = undefined) {
    requireArguments(arguments.length, 1, "get");
    if (!isDurableObjectId(id)) throw new TypeError("get: the argument must be a DurableObjectId: use idFromName() or idFromString().");
    const mode = options?.routingMode;
    if (mode !== undefined && mode !== null && mode !== "primary-only") throw new RangeError(`unknown routingMode: ${mode}`);
    if (this.#jurisdiction !== "" && id.jurisdiction !== this.#jurisdiction) {
      throw new TypeError("get called on jurisdictional subnamespace with an ID from a different jurisdiction");
    }
    const key = this.#key(id.jurisdiction ?? "");
    if (!isProvenBy(id, key) && !isHexOf(key, id.toString())) throw new TypeError("Durable Object ID is not valid for this namespace.");
    return new Proxy(new DurableObjectStub(this.#binding, id, this.#facts?.pass), MEMBERS);
  }

  getByName(name, options = undefined) {
    requireArguments(arguments.length, 1, "getByName");
    return this.get(this.idFromName(name), options);
  }

  jurisdiction(name) {
    requireArguments(arguments.length, 1, "jurisdiction");
    const wanted = checkJurisdiction(toDOMString(name));
    return new DurableObjectNamespace(this.#binding, this.#facts, wanted);
  }
}

/** Whether a value is a stub of an object. */
export function isObjectStub(value) {
  if (typeof value !== "object" || value === null || !native.isProxy(value)) return false;
  const target = native.proxyTarget(value);
  return target !== null && is(target);
}

export function passOfObject(stub) {
  return passOf(native.proxyTarget(stub));
}

/** What ctx.exports knows: { worker, key, classes? }. */
export function ownFacts() {
  return ownFactsOf("durable_object");
}

/** The namespace of an own class, for ctx.exports. */
export function ownNamespace(facts) {
  return new DurableObjectNamespace(null, facts);
}

defineInterface(DurableObjectNamespace, { name: "DurableObjectNamespace" });
defineBinding("durable_object", DurableObjectNamespace);
