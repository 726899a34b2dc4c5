// HKDF, PBKDF2 and deriveKey.
import { deepEqual, equal, rejects } from "./assert.js";

const { subtle } = crypto;
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
const bytes = (string) => Uint8Array.from(string.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const text = (string) => new TextEncoder().encode(string);
const EMPTY = new Uint8Array(0);
const DERIVE = ["deriveBits", "deriveKey"];

const pbkdf2 = async (hash, password, salt, iterations, bits) => {
  const key = await subtle.importKey("raw", text(password), "PBKDF2", false, DERIVE);
  return hex(await subtle.deriveBits({ name: "PBKDF2", hash, salt: text(salt), iterations }, key, bits));
};

export const tests = {
  "HKDF: RFC 5869, cases 1 and 3": async () => {
    const key = await subtle.importKey("raw", new Uint8Array(22).fill(11), "HKDF", false, DERIVE);
    const salt = bytes("000102030405060708090a0b0c");
    const info = bytes("f0f1f2f3f4f5f6f7f8f9");
    equal(
      hex(await subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info }, key, 42 * 8)),
      "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    );
    equal(
      hex(await subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: EMPTY, info: EMPTY }, key, 42 * 8)),
      "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    );
  },
  "PBKDF2: RFC 6070 and a long one": async () => {
    equal(await pbkdf2("SHA-1", "password", "salt", 1, 160), "0c60c80f961f0e71f3a9b524af6012062fe037a6");
    equal(await pbkdf2("SHA-1", "password", "salt", 4096, 160), "4b007901b765489abead49d926f721d065a429c1");
    equal(
      await pbkdf2("SHA-1", "passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096, 200),
      "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038",
    );
    equal(
      await pbkdf2("SHA-512", "The quick brown fox", "The quick brown fox", 100_000, 256),
      "728b035058436d24f76128739b59291a4faa132cbf74675eecc884e02f76cf74",
    );
  },
  "changing the salt during a derivation has no effect": async () => {
    const key = await subtle.importKey("raw", text("password"), "PBKDF2", false, DERIVE);
    const salt = text("salt");
    const promise = subtle.deriveBits({ name: "PBKDF2", hash: "SHA-1", salt, iterations: 4096 }, key, 160);
    salt.fill(0);
    equal(hex(await promise), "4b007901b765489abead49d926f721d065a429c1");
  },
  "lengths": async () => {
    const hkdf = await subtle.importKey("raw", EMPTY, "HKDF", false, DERIVE);
    const params = { name: "HKDF", hash: "SHA-256", salt: EMPTY, info: EMPTY };
    equal((await subtle.deriveBits(params, hkdf, 0)).byteLength, 0);
    equal((await subtle.deriveBits(params, hkdf, 255 * 256)).byteLength, 255 * 32);
    await rejects(subtle.deriveBits(params, hkdf, 255 * 256 + 8), "OperationError");
    await rejects(subtle.deriveBits(params, hkdf, 4), "OperationError");
    await rejects(subtle.deriveBits(params, hkdf), "OperationError");
    await rejects(subtle.deriveBits(params, hkdf, null), "OperationError");
    for (const length of [NaN, -8, 2 ** 32 + 8, 8n]) await rejects(subtle.deriveBits(params, hkdf, length), TypeError);
    const pbkdf = await subtle.importKey("raw", EMPTY, "PBKDF2", false, DERIVE);
    const slow = { name: "PBKDF2", hash: "SHA-256", salt: EMPTY, iterations: 1 };
    equal((await subtle.deriveBits(slow, pbkdf, 0)).byteLength, 0);
    await rejects(subtle.deriveBits(slow, pbkdf, null), "OperationError");
    await rejects(subtle.deriveBits(slow, pbkdf, 12), "OperationError");
  },
  "endless work is refused": async () => {
    const key = await subtle.importKey("raw", EMPTY, "PBKDF2", false, DERIVE);
    const params = { name: "PBKDF2", hash: "SHA-256", salt: EMPTY };
    await rejects(subtle.deriveBits({ ...params, iterations: 0 }, key, 256), "OperationError");
    await rejects(subtle.deriveBits({ ...params, iterations: 100_001 }, key, 256), "NotSupportedError");
    await rejects(subtle.deriveBits({ ...params, iterations: 2 ** 32 - 1 }, key, 256), "NotSupportedError");
    await rejects(subtle.deriveBits({ ...params, iterations: 2 ** 32 }, key, 256), TypeError);
    await rejects(subtle.deriveBits({ ...params, iterations: 100_000 }, key, 2 ** 31), "OperationError");
    await rejects(subtle.deriveBits({ ...params, iterations: 1 }, key, 2 ** 32 - 8), "OperationError");
  },
  "deriveKey returns keys of the right length": async () => {
    const base = await subtle.importKey("raw", text("secret"), "HKDF", false, DERIVE);
    const params = { name: "HKDF", hash: "SHA-256", salt: EMPTY, info: EMPTY };
    const aes = await subtle.deriveKey(params, base, { name: "AES-GCM", length: 256 }, true, ["encrypt"]);
    deepEqual(aes.algorithm, { name: "AES-GCM", length: 256 });
    equal(hex(await subtle.exportKey("raw", aes)), hex(await subtle.deriveBits(params, base, 256)));
    const hmac = await subtle.deriveKey(params, base, { name: "HMAC", hash: "SHA-512" }, false, ["sign"]);
    equal(hmac.algorithm.length, 1024);
    await rejects(subtle.exportKey("raw", hmac), "InvalidAccessError");
    await rejects(subtle.deriveKey(params, base, { name: "AES-GCM", length: 100 }, true, ["encrypt"]), "OperationError");
    await rejects(subtle.deriveKey(params, base, { name: "AES-GCM", length: 128 }, true, []), "SyntaxError");
    await rejects(subtle.deriveKey(params, base, { name: "HMAC", hash: "SHA-1", length: 0 }, true, ["sign"]), TypeError);
    await rejects(subtle.deriveKey(params, base, { name: "ECDH", namedCurve: "P-256" }, true, []), "NotSupportedError");
  },
  "keys for derivation cannot be exported": async () => {
    for (const name of ["HKDF", "PBKDF2"]) {
      await rejects(subtle.importKey("raw", EMPTY, name, true, DERIVE), "SyntaxError");
      await rejects(subtle.importKey("raw", EMPTY, name, false, ["sign"]), "SyntaxError");
      await rejects(subtle.importKey("raw", EMPTY, name, false, []), "SyntaxError");
      await rejects(subtle.importKey("jwk", { kty: "oct", k: "" }, name, false, DERIVE), "NotSupportedError");
      await rejects(subtle.generateKey(name, false, DERIVE), "NotSupportedError");
      const key = await subtle.importKey("raw", EMPTY, name, false, ["deriveKey"]);
      await rejects(subtle.exportKey("raw", key), "NotSupportedError");
      const params = { name, hash: "SHA-256", salt: EMPTY, info: EMPTY, iterations: 1 };
      await rejects(subtle.deriveBits(params, key, 8), "InvalidAccessError");
    }
  },
};
