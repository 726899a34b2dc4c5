// What key pairs of all kinds have in common.
import { native } from "../internal/native.js";
import { accessError, dataError, operationError, syntaxError } from "./errors.js";
import { intersectUsages } from "./key.js";
import { viewOf } from "./idl.js";

// Numbers of the kinds of key, as in TypeOf of crypto_der.cc.
export const RSA = 0;
export const EC = 1;
export const ED25519 = 2;
export const X25519 = 3;
export const ED448 = 4;
export const X448 = 5;

export function requireType(key, type) {
  if (key.type !== type) throw accessError(`This operation needs a ${type} key, not a ${key.type} key.`);
}

/** A key from PKCS #8 or SubjectPublicKeyInfo. `curve` is a number, for EC only. */
export function importDer(kind, format, keyData, curve = undefined) {
  const handle = native.importDer(kind, format === "pkcs8", viewOf(keyData), curve);
  if (handle === undefined) throw dataError(`The ${format} data is not a valid key of this algorithm.`);
  return handle;
}

export function exportDer(key, format) {
  requireType(key, format === "pkcs8" ? "private" : "public");
  const der = native.exportDer(key.handle, format === "pkcs8");
  if (der === undefined) throw operationError("The key could not be exported.");
  return der;
}

/** The state of an imported public or private key. */
export function halfKey(type, algorithm, handle) {
  return { type, extractable: false, algorithm, usages: [], handle };
}

/** Both keys of a generated pair. The public key is always extractable. */
export function keyPair(algorithm, handle, extractable, usages, publicUsages, privateUsages) {
  return {
    privateKey: { type: "private", extractable, algorithm, usages: intersectUsages(usages, privateUsages), handle },
    publicKey: { type: "public", extractable: true, algorithm, usages: intersectUsages(usages, publicUsages), handle },
  };
}

/** Checks before the pair is generated that the private key has a usage. */
export function requirePrivateUsage(usages, privateUsages) {
  if (intersectUsages(usages, privateUsages).length === 0) {
    throw syntaxError("The usages leave the private key without any use.");
  }
}
