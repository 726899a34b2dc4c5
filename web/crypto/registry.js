// Maps algorithm names to their implementation, and normalizes a worker's description of an algorithm.
// https://w3c.github.io/webcrypto/#algorithm-normalization
import { lazy } from "../internal/lazy.js";
import { native } from "../internal/native.js";
import { toDOMString } from "../internal/webidl.js";
import { notSupported } from "./errors.js";
import { copyOf, toBufferSource, toObjectOrString } from "./idl.js";

// operation -> (name in upper case -> { name, members, run })
const operations = new Map();

/**
 * Registers an algorithm. `operations` lists what it supports: `{ sign: [members, run] }`, where `members` are the members of the
 * parameter dictionary in the order in which Web IDL reads them.
 */
export function defineAlgorithm(name, supported) {
  for (const [operation, [members, run]] of Object.entries(supported)) {
    if (!operations.has(operation)) operations.set(operation, new Map());
    operations.get(operation).set(name.toUpperCase(), { name, members, run });
  }
}

/** Loads the module that registers an algorithm, on the first use of its family. */
function familyOf(upper) {
  if (upper === "HMAC") return "crypto/hmac.js";
  if (upper.startsWith("SHA")) return undefined;
  if (upper === "AES-OCB" || upper.startsWith("CHACHA")) return "crypto/aead.js";
  if (upper.startsWith("AES-")) return "crypto/aes.js";
  if (upper.startsWith("RSA")) return "crypto/rsa.js";
  if (upper.startsWith("EC")) return "crypto/ec.js";
  if (upper.startsWith("ML-")) return "crypto/post_quantum.js";
  if (upper === "HKDF" || upper === "PBKDF2") return "crypto/kdf.js";
  if (upper === "NODE-ED25519") return "crypto/curve25519.js";
  return upper.startsWith("ED") || upper.startsWith("X") ? "crypto/curve25519.js" : undefined;
}

/** A member of a parameter dictionary: `convert` is its Web IDL conversion, `finish` a later step of the normalization. */
export function required(name, convert, finish = undefined) {
  return { name, convert, finish, isRequired: true };
}

export function optional(name, convert, finish = undefined) {
  return { name, convert, finish, isRequired: false };
}

/** Conversions of members that need both steps. */
export const bufferSource = [toBufferSource, copyOf];
export const hashIdentifier = [toObjectOrString, (value) => normalizeHash(value)];

const UPPER = /[a-z]+/g;
// Names are compared in ASCII only.
const toUpper = (name) => name.replace(UPPER, (letters) => letters.toUpperCase());

function findOperation(name, operation) {
  const upper = toUpper(name);
  const family = familyOf(upper);
  if (family !== undefined) lazy(family);
  if (operation === "digest" && !operations.has(operation)) defineHashes();
  return operations.get(operation)?.get(upper);
}

// Null counts as an empty dictionary, like undefined.
function toDictionary(algorithm) {
  if (typeof algorithm === "string") return { __proto__: null, name: algorithm };
  return algorithm;
}

/** The text for an algorithm that an operation does not know. */
function unknownAlgorithm(name, operation) {
  if (operation === "digest") return "Unrecognized or unimplemented digest algorithm requested.";
  if (operation === "generateKey") return `Unrecognized key generation algorithm "${name}" requested.`;
  return `${name} is not an algorithm that can be used here (${operation}).`;
}

/** https://w3c.github.io/webcrypto/#dfn-normalize-an-algorithm: an object without prototype, with the operation's `run`. */
export function normalizeAlgorithm(algorithm, operation) {
  const given = toDictionary(algorithm);
  // Steps 1 to 4: to an Algorithm dictionary.
  const name = given.name;
  if (name === undefined) throw new TypeError("An algorithm needs a name.");
  const known = findOperation(toDOMString(name), operation);
  // Step 5.
  if (known === undefined) {
    throw notSupported(unknownAlgorithm(toDOMString(name), operation));
  }
  // Steps 6 to 8: to the dictionary of this algorithm.
  const normalized = { __proto__: null, name: known.name };
  for (const { name: member, convert, isRequired } of known.members) {
    const value = given[member];
    if (value !== undefined) {
      normalized[member] = convert(value, `${known.name}: ${member}`);
    } else if (isRequired) {
      throw new TypeError(`Missing field "${member}" in "algorithm".`);
    }
  }
  // Steps 9 and 10.
  for (const { name: member, finish } of known.members) {
    if (finish !== undefined && normalized[member] !== undefined) normalized[member] = finish(normalized[member]);
  }
  normalized.run = known.run;
  return normalized;
}

/** The function for an operation without parameters; undefined if the algorithm does not support it. */
export function operationOf(name, operation) {
  return findOperation(name, operation)?.run;
}

// --- Hashes ---

// Numbers of HashOf in crypto.cc.
const HASHES = {
  __proto__: null,
  MD5: { number: 0, bits: 128, block: 512 },
  "SHA-1": { number: 1, bits: 160, block: 512 },
  "SHA-256": { number: 2, bits: 256, block: 512 },
  "SHA-384": { number: 3, bits: 384, block: 1024 },
  "SHA-512": { number: 4, bits: 512, block: 1024 },
  // https://wicg.github.io/webcrypto-modern-algos/#sha3
  "SHA3-256": { number: 5, bits: 256, block: 1088 },
  "SHA3-384": { number: 6, bits: 384, block: 832 },
  "SHA3-512": { number: 7, bits: 512, block: 576 },
};

export const hashNumber = (hash) => HASHES[hash.name].number;
export const hashBits = (hash) => HASHES[hash.name].bits;
export const hashBlockBits = (hash) => HASHES[hash.name].block;

function defineHashes() {
  for (const name of Object.keys(HASHES)) {
    defineAlgorithm(name, { digest: [[], (algorithm, data) => native.digest(HASHES[name].number, data)] });
  }
}

/** https://w3c.github.io/webcrypto/#dfn-HashAlgorithmIdentifier. MD5 is allowed for digests only. */
function normalizeHash(value) {
  const hash = normalizeAlgorithm(value, "digest");
  if (hash.name === "MD5") throw notSupported("MD5 can be used for digests only.");
  return { name: hash.name };
}
