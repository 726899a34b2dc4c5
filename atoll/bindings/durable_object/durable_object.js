// A Durable Object namespace as a worker sees it: https://developers.cloudflare.com/durable-objects/api/namespace/
import { fetchFrom } from "#bindings/fetch/fetch.js";
import { defineBinding } from "#web/internal/bindings.js";
import { lazy } from "#web/internal/lazy.js";
import { defineOp } from "#web/internal/ops.js";
import { defineInterface } from "#web/internal/platform.js";
import { requireArguments, toDOMString } from "#web/internal/webidl.js";
import { isOn } from "#web/worker/compatibility.js";
import { URL } from "#web/url/url.js";
import { isDurableObjectId, makeId } from "#web/objects/id.js";
import { ownMember } from "#web/worker/fetcher_members.js";
import { hexOfName, hexOfPrefix, isHexOf, jurisdictionOf, randomHex } from "#web/objects/id_digits.js";

const call = defineOp("durable_object.call");
const FAKE_HOST = "https://fake-host/"; // what URLs were relative to before 2021-11-10
const JURISDICTIONS = ["eu", "fedramp", "fedramp-high", "us"];

// Names that are not forwarded to the object, as for service bindings.
const OURS = new Set(["then", "catch", "finally", "toJSON", "dup", ...Object.getOwnPropertyNames(Object.prototype)]);

class DurableObjectStub {
  #id;
  #target;
  #handle = null;

  constructor(binding, id) {
    this.#id = id;
    this.#target = { binding, id: id.toString(), object: id.name };
  }

  get id() {
    return this.#id;
  }

  get name() {
    return this.#id.name;
  }

  fetch(input, init = undefined) {
    const { binding, id, object } = this.#target;
    const target = typeof input === "string" && !isOn("durable_object_fetch_requires_full_url") ? `${new URL(input, FAKE_HOST)}` : input;
    return fetchFrom(binding, target, init, { id, name: object });
  }

  /** What its properties are properties of, see web/rpc/stubs.js. */
  static handleOf(stub) {
    stub.#handle ??= { ask: (path, args) => lazy("rpc/service_stub.js").askEntrypoint(call, stub.#target, path, args) };
    return stub.#handle;
  }
}

const { handleOf } = DurableObjectStub;
delete DurableObjectStub.handleOf;
defineInterface(DurableObjectStub);

const MEMBERS = {
  get(stub, key) {
    if (key === "fetch") return (input, init) => stub.fetch(input, init);
    if (key === "id") return stub.id;
    if (key === "name") return stub.name;
    if (typeof key === "symbol" || OURS.has(key)) return Reflect.get(stub, key);
    const own = ownMember(stub, key);
    return own === null ? lazy("rpc/stubs.js").makeProperty(handleOf(stub), [key]) : own.value;
  },
  set() {
    return false;
  },
};

function checkJurisdiction(name) {
  if (!JURISDICTIONS.includes(name)) throw new TypeError(`jurisdiction: the jurisdiction "${name}" is not one of ${JURISDICTIONS.join(", ")}.`);
  return name;
}

class DurableObjectNamespace {
  #binding;
  #keys; // hexadecimal, by jurisdiction; "" is that of the namespace itself
  #jurisdiction;

  constructor(binding, facts, jurisdiction = "") {
    this.#binding = binding;
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
    return makeId(hexOfPrefix(this.#key(jurisdiction), randomHex()), undefined, jurisdiction || undefined);
  }

  idFromName(name) {
    requireArguments(arguments.length, 1, "idFromName");
    const text = toDOMString(name);
    return makeId(hexOfName(this.#key(this.#jurisdiction), text), text, this.#jurisdiction || undefined);
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
    return makeId(lower, undefined, jurisdiction || undefined);
  }

  get(id, options = undefined) {
    requireArguments(arguments.length, 1, "get");
    if (!isDurableObjectId(id)) throw new TypeError("get: the argument must be a DurableObjectId: use idFromName() or idFromString().");
    const mode = options?.routingMode;
    if (mode !== undefined && mode !== null && mode !== "primary-only") throw new RangeError(`unknown routingMode: ${mode}`);
    if (this.#jurisdiction !== "" && id.jurisdiction !== this.#jurisdiction) {
      throw new TypeError("get called on jurisdictional subnamespace with an ID from a different jurisdiction");
    }
    if (!isHexOf(this.#key(id.jurisdiction ?? ""), id.toString())) throw new TypeError("Durable Object ID is not valid for this namespace.");
    return new Proxy(new DurableObjectStub(this.#binding, id), MEMBERS);
  }

  getByName(name, options = undefined) {
    requireArguments(arguments.length, 1, "getByName");
    return this.get(this.idFromName(name), options);
  }

  jurisdiction(name) {
    requireArguments(arguments.length, 1, "jurisdiction");
    const wanted = checkJurisdiction(toDOMString(name));
    return new DurableObjectNamespace(this.#binding, { keys: this.#keys }, wanted);
  }
}

defineInterface(DurableObjectNamespace, { name: "DurableObjectNamespace" });
defineBinding("durable_object", DurableObjectNamespace);
