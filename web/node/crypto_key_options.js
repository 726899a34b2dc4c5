// The options that describe keys: https://nodejs.org/api/crypto.html#keyobjectexportoptions and #cryptocreateprivatekeykey
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument, invalidValue } from "./errors.js";

// Numbers of Encoding in crypto_keys.cc.
export const ENCODINGS = { __proto__: null, pkcs1: 1, pkcs8: 2, spki: 3, sec1: 4 };

export const isBuffer = (value) => ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
export const isText = (value) => typeof value === "string" || isBuffer(value);

/** The bytes of text or a buffer. */
export function bytesOf(value, name, encoding = undefined) {
  if (typeof value === "string") return Buffer.from(value, encoding === "buffer" ? "utf8" : encoding);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (isBuffer(value)) return new Uint8Array(value);
  throw invalidArgument(name, "of type string or an instance of ArrayBuffer, Buffer, TypedArray, or DataView", value);
}

export function incompatible(encoding, reason) {
  return codedError(Error, "ERR_CRYPTO_INCOMPATIBLE_KEY_OPTIONS", `The selected key encoding ${encoding} ${reason}.`);
}

function readType(type, isRequired, kind, isPublic, name) {
  if (type === undefined && !isRequired) return undefined;
  if (type === "pkcs1") {
    if (kind !== undefined && kind !== "rsa") throw incompatible(type, "can only be used for RSA keys");
    return type;
  }
  if (type === "spki" && isPublic !== false) return type;
  if (type === "pkcs8" && isPublic !== true) return type;
  if (type === "sec1" && isPublic !== true) {
    if (kind !== undefined && kind !== "ec") throw incompatible(type, "can only be used for EC keys");
    return type;
  }
  throw invalidValue(name, type);
}

export function requireOptions(options) {
  if (typeof options !== "object" || options === null || Array.isArray(options)) throw invalidArgument("options", "of type object", options);
}

/**
 * How a key is written, or read if `kind` (of the key) is undefined. `isPublic` is undefined for one that may be either. `path` is the place of
 * the options, for errors.
 */
export function readEncoding(options, kind, isPublic, path = kind === undefined ? "key" : "options") {
  requireOptions(options);
  const isInput = kind === undefined;
  const format = isInput && options.format === undefined ? "pem" : options.format;
  // A key that is generated may be written as JSON; export() handles that format before.
  const isJwk = format === "jwk" && !isInput && path !== "options";
  if (format !== "pem" && format !== "der" && !isJwk) throw invalidValue(`${path}.format`, options.format);
  const type = isJwk ? undefined : readType(options.type, !isInput || format === "der", kind, isPublic, `${path}.type`);
  if (isPublic === true) return { format, type, cipher: undefined, passphrase: undefined };
  const { cipher, passphrase, encoding } = options;
  const hasCipher = cipher !== undefined && cipher !== null;
  if (!isInput && hasCipher) {
    if (typeof cipher !== "string") throw invalidValue(`${path}.cipher`, cipher);
    if (format === "der" && (type === "pkcs1" || type === "sec1")) throw incompatible(type, "does not support encryption");
  } else if (!isInput && passphrase !== undefined) {
    throw invalidValue(`${path}.cipher`, cipher);
  }
  if ((isInput ? passphrase !== undefined : hasCipher) && !isText(passphrase)) throw invalidValue(`${path}.passphrase`, passphrase);
  return {
    format,
    type,
    cipher: hasCipher ? cipher : undefined,
    passphrase: passphrase === undefined ? undefined : bytesOf(passphrase, "key.passphrase", encoding),
  };
}
