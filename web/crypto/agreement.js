// What ECDH and X25519 have in common.
import { native } from "../internal/native.js";
import { requireType } from "./asymmetric.js";
import { accessError, operationError } from "./errors.js";
import { stateOf } from "./key.js";
import { required } from "./registry.js";

function toKey(value, where) {
  const state = stateOf(value);
  if (state === undefined) throw new TypeError(`${where}: the value is not a CryptoKey.`);
  return state;
}

/** https://w3c.github.io/webcrypto/#dfn-EcdhKeyDeriveParams */
export const AGREEMENT_PARAMS = [required("public", toKey)];

/** https://w3c.github.io/webcrypto/#ecdh-operations-derive-bits: `length` in bits, or null for the whole secret. */
export function agree(key, peer, length) {
  requireType(key, "private");
  requireType(peer, "public");
  if (peer.algorithm.name !== key.algorithm.name) throw accessError("The keys are of different algorithms.");
  const secret = native.agree(key.handle, peer.handle);
  if (secret === undefined) throw operationError("The keys do not agree on a secret.");
  if (length === null) return secret;
  if (secret.byteLength * 8 < length) throw operationError(`The secret has fewer than ${length} bits.`);
  const bytes = new Uint8Array(secret, 0, Math.ceil(length / 8)).slice();
  if (length % 8 !== 0) bytes[bytes.length - 1] &= 0xff << (8 - (length % 8));
  return bytes.buffer;
}
