// https://w3c.github.io/webcrypto/#hkdf and #pbkdf2
import { native } from "../internal/native.js";
import { notSupported, operationError, resultOf, syntaxError } from "./errors.js";
import { toUnsignedLong, viewOf } from "./idl.js";
import { secretKey } from "./key.js";
import { bufferSource, defineAlgorithm, hashBits, hashIdentifier, hashNumber, required } from "./registry.js";
import { checkUsages, importSecret } from "./symmetric.js";

const HKDF_PARAMS = [
  required("hash", ...hashIdentifier),
  required("info", ...bufferSource),
  required("salt", ...bufferSource),
];
const PBKDF2_PARAMS = [
  required("hash", ...hashIdentifier),
  required("iterations", toUnsignedLong),
  required("salt", ...bufferSource),
];

/** The setting pbkdf2_iterations; the default is Cloudflare's limit. */
export function mostIterations() {
  return native.mostIterations();
}

function checkLength(name, length) {
  if (length === null) throw operationError(`${name} cannot derive a key with null length.`);
  if (length % 8 !== 0) throw operationError(`${name} requires a derived key length that is a multiple of eight (requested ${length}).`);
}

/** https://w3c.github.io/webcrypto/#hkdf-operations-derive-bits */
function deriveHkdf({ hash, salt, info }, key, length) {
  checkLength("HKDF", length);
  if (length > 255 * hashBits(hash)) throw operationError(`HKDF derives at most ${255 * hashBits(hash)} bits with this hash.`);
  return resultOf(native.hkdf(key.handle, hashNumber(hash), salt, info, length / 8), "The derivation failed.");
}

/** https://w3c.github.io/webcrypto/#pbkdf2-operations-derive-bits */
function derivePbkdf2({ hash, salt, iterations }, key, length) {
  checkLength("PBKDF2", length);
  if (iterations === 0) throw operationError("PBKDF2 requires a positive iteration count (requested 0).");
  if (iterations > mostIterations()) {
    throw notSupported(`PBKDF2 with more than ${mostIterations()} iterations is not supported (requested ${iterations}).`);
  }
  if (length === 0) return new ArrayBuffer(0);
  const result = native.pbkdf2(key.handle, hashNumber(hash), salt, iterations, length / 8);
  return resultOf(result, "So many bits with so many iterations would take too long.");
}

/** https://w3c.github.io/webcrypto/#hkdf-operations-import-key */
function importKey(format, keyData, { name }, extractable, usages) {
  if (format !== "raw") throw notSupported(`A key of ${name} cannot be imported from "${format}".`);
  checkUsages(usages, ["deriveKey", "deriveBits"]);
  if (extractable) throw syntaxError(`${name} key cannot be extractable.`);
  return secretKey({ name }, importSecret(viewOf(keyData)));
}

const keyOperations = { importKey: [[], importKey], "get key length": [[], () => null] };

defineAlgorithm("HKDF", { deriveBits: [HKDF_PARAMS, deriveHkdf], ...keyOperations });
defineAlgorithm("PBKDF2", { deriveBits: [PBKDF2_PARAMS, derivePbkdf2], ...keyOperations });
