// What HMAC and AES have in common: keys that are plain bytes.
import { native } from "../internal/native.js";
import { operationError, syntaxError } from "./errors.js";
import { decodeMember, encodeMember } from "./jwk.js";

/** Throws unless every usage is one of `allowed`. */
export function checkUsages(usages, allowed) {
  for (const usage of usages) {
    if (!allowed.includes(usage)) throw syntaxError(`A key of this algorithm cannot be used for "${usage}".`);
  }
}

export function importSecret(bytes) {
  const handle = native.importSecret(bytes);
  if (handle === undefined) throw operationError("Too many keys.");
  return handle;
}

export function generateSecret(bits) {
  const handle = native.generateSecret(Math.ceil(bits / 8));
  if (handle === undefined) throw operationError("The key is too long.");
  return handle;
}

export const secretOfJwk = (jwk) => decodeMember(jwk, "k");

export function secretToJwk(key, alg) {
  return {
    kty: "oct",
    k: encodeMember(native.exportSecret(key.handle)),
    alg,
    key_ops: [...key.usages],
    ext: key.extractable,
  };
}
