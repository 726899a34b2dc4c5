// https://developers.cloudflare.com/durable-objects/api/id/
import { defineInterface } from "../internal/platform.js";

const OURS = Symbol("ours");

export class DurableObjectId {
  #hex;

  constructor(key, hex, name, jurisdiction) {
    if (key !== OURS) throw new TypeError("Illegal constructor");
    this.#hex = hex;
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

  static isOne(value) {
    return typeof value === "object" && value !== null && #hex in value;
  }
}

export const isDurableObjectId = DurableObjectId.isOne;
delete DurableObjectId.isOne;
defineInterface(DurableObjectId, { name: "DurableObjectId" });

export function makeId(hex, name = undefined, jurisdiction = undefined) {
  return new DurableObjectId(OURS, hex, name, jurisdiction);
}
