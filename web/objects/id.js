// https://developers.cloudflare.com/durable-objects/api/id/
import { defineInterface } from "../internal/platform.js";

const OURS = Symbol("ours");

export class DurableObjectId {
  #hex;
  #proof; // the key of the namespace that made it, if one of this worker did

  constructor(key, hex, name, jurisdiction, proof) {
    if (key !== OURS) throw new TypeError("Illegal constructor");
    this.#hex = hex;
    this.#proof = proof;
    if (name !== undefined) Object.defineProperty(this, "name", { value: name, enumerable: true });
    if (jurisdiction !== undefined) Object.defineProperty(this, "jurisdiction", { value: jurisdiction, enumerable: true });
  }

  toString() {
    return this.#hex;
  }

  equals(other) {
    if (!isDurableObjectId(other)) throw new TypeError("equals: the argument must be a DurableObjectId.");
    return this.#hex === other.#hex;
  }

  static isProven(id, key) {
    return key !== undefined && id.#proof === key;
  }

  static isOne(value) {
    return typeof value === "object" && value !== null && #hex in value;
  }
}

export const isDurableObjectId = DurableObjectId.isOne;
/** Whether an id was made with this key: then it need not be checked. */
export const isProvenBy = DurableObjectId.isProven;
delete DurableObjectId.isOne;
delete DurableObjectId.isProven;
defineInterface(DurableObjectId, { name: "DurableObjectId" });

export function makeId(hex, name = undefined, jurisdiction = undefined, proof = undefined) {
  return new DurableObjectId(OURS, hex, name, jurisdiction, proof);
}
