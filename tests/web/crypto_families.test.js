// Each family of algorithms is a module that is loaded when a worker first names one of its algorithms. All of them must be
// found, by names in any case, and similar names must be refused.
import { equal, rejects } from "./assert.js";

const { subtle } = crypto;
const AES = { length: 128 };
const RSA = { modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" };
const EC = { namedCurve: "P-256" };

// Generates a key with it, or imports one if there is nothing to generate.
const GENERATED = [
  ["AES-CBC", AES, ["encrypt"]], ["AES-CTR", AES, ["encrypt"]], ["AES-GCM", AES, ["encrypt"]], ["AES-KW", AES, ["wrapKey"]],
  ["AES-OCB", AES, ["encrypt"]], ["ChaCha20-Poly1305", {}, ["encrypt"]], ["HMAC", { hash: "SHA-256" }, ["sign"]],
  ["ECDSA", EC, ["sign"]], ["ECDH", EC, ["deriveBits"]], ["Ed25519", {}, ["sign"]], ["X25519", {}, ["deriveBits"]],
  ["Ed448", {}, ["sign"]], ["X448", {}, ["deriveBits"]], ["ML-DSA-44", {}, ["sign"]], ["ML-KEM-512", {}, ["encapsulateBits", "decapsulateBits"]],
];
const IMPORTED = ["HKDF", "PBKDF2"];
const HASHES = ["MD5", "SHA-1", "SHA-256", "SHA-384", "SHA-512", "SHA3-256", "SHA3-384", "SHA3-512"];
const CASES = [(name) => name.toLowerCase(), (name) => name.toUpperCase(), (name) => name];

export const tests = {
  "every algorithm is found by its name in any case": async () => {
    for (const inCase of CASES) {
      for (const [name, params, usages] of GENERATED) {
        const made = await subtle.generateKey({ ...params, name: inCase(name) }, true, usages);
        equal((made.privateKey ?? made).algorithm.name, name);
      }
      for (const name of IMPORTED) {
        const key = await subtle.importKey("raw", new Uint8Array(8), inCase(name), false, ["deriveBits"]);
        equal(key.algorithm.name, name);
      }
      for (const name of HASHES) equal((await subtle.digest(inCase(name), new Uint8Array(1))) instanceof ArrayBuffer, true);
    }
    for (const name of ["RSASSA-PKCS1-v1_5", "RSA-PSS", "RSA-OAEP"]) {
      const jwk = { kty: "RSA", n: "A".repeat(341) + "Q", e: "AQAB" };
      const usage = name === "RSA-OAEP" ? "encrypt" : "verify";
      const error = await subtle.importKey("jwk", jwk, { ...RSA, name: name.toLowerCase() }, true, [usage]).catch((reason) => reason);
      equal(error.name === "NotSupportedError", false, name);
    }
  },
  "unknown algorithms and unsupported operations are refused": async () => {
    for (const name of ["", "AES", "AES-XTS", "AES-", "EC", "ECX", "ED", "X", "XYZ", "ML-", "RSA", "CHACHA", "SHA", "SHA-3", "constructor", "__proto__"]) {
      equal((await rejects(subtle.generateKey({ name }, true, ["sign"]))).name, "NotSupportedError", name);
      equal((await rejects(subtle.digest(name, new Uint8Array(1)))).name, "NotSupportedError", name);
    }
    for (const name of ["HMAC", "AES-GCM", "ECDSA", "HKDF"]) {
      equal((await rejects(subtle.digest(name, new Uint8Array(1)))).name, "NotSupportedError", name);
    }
    equal((await rejects(subtle.sign("SHA-256", await subtle.generateKey({ name: "HMAC", hash: "SHA-1" }, true, ["sign"]), new Uint8Array(1)))).name, "NotSupportedError");
  },
};
