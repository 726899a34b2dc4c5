// https://nodejs.org/api/crypto.html#cryptopublicencryptkey-buffer and its neighbours: encryption with RSA keys.
import { native } from "../internal/native.js";
import { output, requireHash, toBytes } from "./crypto_hash.js";
import { keyState, kindOf, privateState, publicState } from "./crypto_keys.js";
import { codedError } from "./errors.js";

const PKCS1 = 1;
const OAEP = 4;
const NOTHING = new Uint8Array(0);

// In the order of rsaCrypt in crypto_agree.cc.
const ENCRYPT = 0;
const DECRYPT = 1;
const SIGN = 2;
const RECOVER = 3;

function crypt(what, key, buffer, readKey, fallback) {
  const options = typeof key === "object" && key !== null && !ArrayBuffer.isView(key) && keyState(key) === undefined ? key : {};
  const { padding = fallback, oaepHash = "sha1", oaepLabel, encoding } = options;
  const state = readKey(key);
  const { handle } = state;
  if (kindOf(state) !== "rsa") throw codedError(Error, "ERR_OSSL_EVP_OPERATION_NOT_SUPPORTED_FOR_THIS_KEYTYPE", "operation not supported for this keytype");
  const label = oaepLabel === undefined ? NOTHING : toBytes(oaepLabel, undefined, "key.oaepLabel");
  const data = toBytes(buffer, encoding, "buffer");
  const result = native.onTheSpot(() => native.rsaCrypt(handle, what, padding, requireHash(oaepHash).number, label, data));
  if (result === undefined) throw codedError(Error, "ERR_CRYPTO_OPERATION_FAILED", "The data does not fit the key and its padding");
  return output(result, undefined);
}

export const publicEncrypt = (key, buffer) => crypt(ENCRYPT, key, buffer, publicState, OAEP);
export const privateDecrypt = (key, buffer) => crypt(DECRYPT, key, buffer, privateState, OAEP);
export const privateEncrypt = (key, buffer) => crypt(SIGN, key, buffer, privateState, PKCS1);
export const publicDecrypt = (key, buffer) => crypt(RECOVER, key, buffer, publicState, PKCS1);
