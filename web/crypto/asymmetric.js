// What key pairs of all kinds have in common.
import { native } from "../internal/native.js";
import { accessError, dataError, operationError, syntaxError } from "./errors.js";
import { intersectUsages } from "./key.js";
import { viewOf } from "./idl.js";

// Kinds of keys, as TypeOf in crypto_der.cc numbers them.
export const RSA = 0;
export const EC = 1;
export const ED25519 = 2;
export const X25519 = 3;
export const ED448 = 4;
export const X448 = 5;

export function requireType(key, type) {
  if (key.type !== type) throw accessError(`This takes a ${type} key, not a ${key.type} one.`);
}

/** A key from PKCS #8 or SubjectPublicKeyInfo. `curve` is a number, for EC alone. */
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

/** The state of half a pair, for an import. */
export function halfKey(type, algorithm, handle) {
  return { type, extractable: false, algorithm, usages: [], handle };
}

/** Both halves of a generated pair; the public one can always be extracted. */
export function keyPair(algorithm, handle, extractable, usages, publicUsages, privateUsages) {
  return {
    privateKey: { type: "private", extractable, algorithm, usages: intersectUsages(usages, privateUsages), handle },
    publicKey: { type: "public", extractable: true, algorithm, usages: intersectUsages(usages, publicUsages), handle },
  };
}

/** A pair whose private key is good for nothing is not worth the time it takes to make. */
export function requirePrivateUsage(usages, privateUsages) {
  if (intersectUsages(usages, privateUsages).length === 0) {
    throw syntaxError("The usages leave the private key without any use.");
  }
}
