// https://wicg.github.io/webcrypto-modern-algos/
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const { subtle } = crypto;
const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
const same = (a, b) => hex(a) === hex(b);
const TEXT = new TextEncoder().encode("a message");

export const tests = {
  "digests of SHA-3": async () => {
    equal(hex(await subtle.digest("SHA3-256", new TextEncoder().encode("abc"))), "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532");
    equal((await subtle.digest("sha3-512", TEXT)).byteLength, 64);
  },
  "ChaCha20-Poly1305 as in RFC 8439": async () => {
    // https://www.rfc-editor.org/rfc/rfc8439#section-2.8.2
    const raw = bytes("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
    const key = await subtle.importKey("raw-secret", raw, "ChaCha20-Poly1305", true, ["encrypt", "decrypt"]);
    const params = { name: "ChaCha20-Poly1305", iv: bytes("070000004041424344454647"), additionalData: bytes("50515253c0c1c2c3c4c5c6c7") };
    const plain = new TextEncoder().encode("Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.");
    const sealed = await subtle.encrypt(params, key, plain);
    equal(hex(sealed).slice(0, 32), "d31a8d34648e60db7b86afbc53ef7ec2");
    equal(hex(sealed).slice(-32), "1ae10b594f09e26a7e902ecbd0600691");
    ok(same(await subtle.decrypt(params, key, sealed), plain));
    const broken = new Uint8Array(sealed);
    broken[0] ^= 1;
    equal((await rejects(subtle.decrypt(params, key, broken))).name, "OperationError");
    equal((await rejects(subtle.encrypt({ ...params, iv: new Uint8Array(11) }, key, plain))).name, "OperationError");
    equal((await subtle.exportKey("jwk", key)).alg, "C20P");
    equal((await rejects(subtle.importKey("raw", raw, "ChaCha20-Poly1305", true, ["encrypt"]))).name, "NotSupportedError");
  },
  "AES-OCB as in RFC 7253": async () => {
    // https://www.rfc-editor.org/rfc/rfc7253#appendix-A
    const key = await subtle.importKey("raw-secret", bytes("000102030405060708090a0b0c0d0e0f"), "AES-OCB", false, ["encrypt", "decrypt"]);
    const sealed = await subtle.encrypt({ name: "AES-OCB", iv: bytes("bbaa99887766554433221101"), additionalData: bytes("0001020304050607") }, key, bytes("0001020304050607"));
    equal(hex(sealed).toUpperCase(), "6820B3657B6F615A5725BDA0D3B4EB3A257C9AF1F8F03009");
    for (const tagLength of [64, 96, 128]) {
      const params = { name: "AES-OCB", iv: new Uint8Array(15), tagLength };
      const short = await subtle.encrypt(params, key, TEXT);
      equal(short.byteLength, TEXT.length + tagLength / 8);
      ok(same(await subtle.decrypt(params, key, short), TEXT));
    }
    equal((await rejects(subtle.encrypt({ name: "AES-OCB", iv: new Uint8Array(16) }, key, TEXT))).name, "OperationError");
  },
  "ML-DSA signs, and its keys can be exported and imported in every format": async () => {
    for (const [name, size] of [["ML-DSA-44", 2420], ["ML-DSA-65", 3309], ["ML-DSA-87", 4627]]) {
      const { privateKey, publicKey } = await subtle.generateKey(name, true, ["sign", "verify"]);
      const context = new Uint8Array([1, 2]);
      const signature = await subtle.sign({ name, context }, privateKey, TEXT);
      equal(signature.byteLength, size);
      for (const format of ["spki", "raw-public", "jwk"]) {
        const copy = await subtle.importKey(format, await subtle.exportKey(format, publicKey), name, true, ["verify"]);
        equal(await subtle.verify({ name, context }, copy, signature, TEXT), true);
        equal(await subtle.verify(name, copy, signature, TEXT), false);
      }
      for (const format of ["pkcs8", "raw-seed", "jwk"]) {
        const copy = await subtle.importKey(format, await subtle.exportKey(format, privateKey), name, false, ["sign"]);
        equal(await subtle.verify(name, publicKey, await subtle.sign(name, copy, TEXT), TEXT), true);
      }
      equal((await subtle.exportKey("pkcs8", privateKey)).byteLength, 54);
      equal((await rejects(subtle.sign({ name, context: new Uint8Array(256) }, privateKey, TEXT))).name, "OperationError");
    }
    // The first bytes of the public key of the seed 00 01 … 1f, https://datatracker.ietf.org/doc/rfc9881/ appendix C.1
    const seed = Uint8Array.from({ length: 32 }, (_, index) => index);
    const known = await subtle.importKey("raw-seed", seed, "ML-DSA-44", false, ["sign"]);
    const half = await subtle.getPublicKey(known, ["verify"]);
    equal(hex(await subtle.exportKey("raw-public", half)).slice(0, 32), "d7b2b47254aae0db45e7930d4a98d2c9");
    equal((await rejects(subtle.importKey("raw-seed", seed.slice(1), "ML-DSA-44", false, ["sign"]))).name, "DataError");
    equal((await rejects(subtle.generateKey("ML-DSA-44", true, ["encrypt"]))).name, "SyntaxError");
    equal((await rejects(subtle.generateKey("ML-DSA-44", true, ["verify"]))).name, "SyntaxError");
  },
  "ML-KEM agrees on keys": async () => {
    for (const [name, size] of [["ML-KEM-512", 768], ["ML-KEM-768", 1088], ["ML-KEM-1024", 1568]]) {
      const pair = await subtle.generateKey(name, true, ["encapsulateKey", "encapsulateBits", "decapsulateKey", "decapsulateBits"]);
      const { sharedKey, ciphertext } = await subtle.encapsulateBits(name, pair.publicKey);
      deepEqual([sharedKey.byteLength, ciphertext.byteLength], [32, size]);
      ok(same(await subtle.decapsulateBits(name, pair.privateKey, ciphertext), sharedKey));
      const aes = { name: "AES-GCM", length: 256 };
      const sent = await subtle.encapsulateKey(name, pair.publicKey, aes, true, ["encrypt"]);
      const got = await subtle.decapsulateKey(name, pair.privateKey, sent.ciphertext, aes, true, ["decrypt"]);
      ok(same(await subtle.exportKey("raw", got), await subtle.exportKey("raw", sent.sharedKey)));
      for (const format of ["pkcs8", "raw-seed", "jwk"]) {
        const copy = await subtle.importKey(format, await subtle.exportKey(format, pair.privateKey), name, true, ["decapsulateBits"]);
        ok(same(await subtle.decapsulateBits(name, copy, ciphertext), sharedKey));
      }
      for (const format of ["spki", "raw-public", "jwk"]) {
        const copy = await subtle.importKey(format, await subtle.exportKey(format, pair.publicKey), name, true, ["encapsulateBits"]);
        equal((await subtle.encapsulateBits(name, copy)).ciphertext.byteLength, size);
      }
      equal((await rejects(subtle.decapsulateBits(name, pair.privateKey, new Uint8Array(5)))).name, "OperationError");
      equal((await rejects(subtle.encapsulateBits(name, pair.privateKey))).name, "InvalidAccessError");
      deepEqual(structuredClone(pair.publicKey).usages, ["encapsulateKey", "encapsulateBits"]);
    }
  },
  "the public half of a private key": async () => {
    const rsa = { name: "RSA-PSS", modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" };
    for (const algorithm of [rsa, { name: "ECDSA", namedCurve: "P-384" }, { name: "Ed25519" }]) {
      const { privateKey, publicKey } = await subtle.generateKey(algorithm, false, ["sign", "verify"]);
      const half = await subtle.getPublicKey(privateKey, ["verify"]);
      deepEqual([half.type, half.extractable, half.usages], ["public", true, ["verify"]]);
      ok(same(await subtle.exportKey("spki", half), await subtle.exportKey("spki", publicKey)));
      equal((await rejects(subtle.getPublicKey(privateKey, ["sign"]))).name, "SyntaxError");
      equal((await rejects(subtle.getPublicKey(publicKey, []))).name, "InvalidAccessError");
      equal((await rejects(subtle.exportKey("pkcs8", half))).name, "InvalidAccessError");
    }
    const secret = await subtle.generateKey({ name: "AES-GCM", length: 128 }, true, ["encrypt"]);
    equal((await rejects(subtle.getPublicKey(secret, []))).name, "NotSupportedError");
  },
  "raw-secret and raw-public equal raw for unambiguous keys": async () => {
    const key = await subtle.importKey("raw-secret", new Uint8Array(16), "AES-CBC", true, ["encrypt"]);
    ok(same(await subtle.exportKey("raw-secret", key), new Uint8Array(16)));
    const { publicKey } = await subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, true, ["deriveBits"]);
    ok(same(await subtle.exportKey("raw-public", publicKey), await subtle.exportKey("raw", publicKey)));
    equal((await rejects(subtle.exportKey("raw-public", key))).name, "NotSupportedError");
    const base = await subtle.importKey("raw", TEXT, "HKDF", false, ["deriveKey"]);
    const params = { name: "HKDF", hash: "SHA-256", salt: TEXT, info: TEXT };
    equal((await subtle.deriveKey(params, base, "ChaCha20-Poly1305", false, ["encrypt"])).algorithm.name, "ChaCha20-Poly1305");
  },
  "Ed448 and X448": async () => {
    const { privateKey, publicKey } = await subtle.generateKey("Ed448", true, ["sign", "verify"]);
    const context = new Uint8Array(3);
    const signature = await subtle.sign({ name: "Ed448", context }, privateKey, TEXT);
    equal(signature.byteLength, 114);
    for (const format of ["spki", "raw", "jwk"]) {
      const copy = await subtle.importKey(format, await subtle.exportKey(format, publicKey), "Ed448", true, ["verify"]);
      equal(await subtle.verify({ name: "Ed448", context }, copy, signature, TEXT), true);
      equal(await subtle.verify("Ed448", copy, signature, TEXT), false);
    }
    // https://www.rfc-editor.org/rfc/rfc8032#section-7.4, "Blank"
    const secret = bytes("6c82a562cb808d10d632be89c8513ebf6c929f34ddfa8c9f63c9960ef6e348a3528c8a3fcc2f044e39a3fc5b94492f8f032e7549a20098f95b");
    const open = bytes("5fd7449b59b461fd2ce787ec616ad46a1da1342485a70e1f8a0ea75d80e96778edf124769b46c7061bd6783df1e50f6cd1fa1abeafe8256180");
    const url = (data) => btoa(String.fromCharCode(...data)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    const jwk = { kty: "OKP", crv: "Ed448", d: url(secret), x: url(open) };
    const known = await subtle.importKey("jwk", jwk, "Ed448", false, ["sign"]);
    ok(hex(await subtle.sign("Ed448", known, new Uint8Array(0))).startsWith("533a37f6bbe457251f023c0d88f976ae"));
    const [a, b] = await Promise.all([1, 2].map(() => subtle.generateKey("X448", true, ["deriveBits"])));
    const agreed = await subtle.deriveBits({ name: "X448", public: b.publicKey }, a.privateKey, null);
    ok(agreed.byteLength === 56 && same(agreed, await subtle.deriveBits({ name: "X448", public: a.publicKey }, b.privateKey, 448)));
    equal((await rejects(subtle.importKey("raw", new Uint8Array(32), "X448", true, []))).name, "DataError");
  },
  "supports() reports what is supported": async () => {
    const { supports } = SubtleCrypto;
    const yes = [
      ["generateKey", { name: "AES-GCM", length: 256 }], ["digest", "SHA-256"], ["sign", "Ed25519"], ["getPublicKey", "RSA-PSS"],
      ["encrypt", { name: "AES-CBC", iv: new Uint8Array(16) }], ["importKey", "HKDF"], ["encapsulateBits", "ML-KEM-768"],
      ["encapsulateKey", "ML-KEM-768", { name: "HMAC", hash: "SHA-256", length: 256 }],
      ["deriveBits", { name: "HKDF", hash: "SHA-256", salt: TEXT, info: TEXT }, 256],
      ["deriveKey", { name: "HKDF", hash: "SHA-256", salt: TEXT, info: TEXT }, { name: "AES-GCM", length: 128 }],
      ["wrapKey", "AES-KW"], ["exportKey", "ECDSA"],
    ];
    const no = [
      ["generateKey", { name: "AES-GCM", length: 100 }], ["generateKey", "AES-GCM"], ["GENERATEKEY", "Ed25519"], ["digest", "CRC-32"],
      ["encrypt", { name: "AES-CBC", iv: new Uint8Array(10) }], ["getPublicKey", "AES-GCM"], ["encapsulate", "ML-KEM-768"],
      ["encapsulateKey", "ML-KEM-768", "Ed25519"], ["generateKey", { name: "ECDH", namedCurve: "P-1" }], ["toString", "SHA-256"],
      ["deriveBits", { name: "HKDF", hash: "SHA-256", salt: TEXT, info: TEXT }],
      ["generateKey", { name: "RSA-PSS", hash: "SHA-256", modulusLength: 2048, publicExponent: new Uint8Array([4]) }],
    ];
    deepEqual(yes.map((args) => supports(...args)), yes.map(() => true));
    deepEqual(no.map((args) => supports(...args)), no.map(() => false));
    throws(() => supports("digest"), TypeError);
  },
};
