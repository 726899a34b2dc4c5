// CryptoKey, SubtleCrypto as interfaces: brands, attributes, usages, normalization, structuredClone; and what hostile code tries.
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const { subtle } = crypto;
const DATA = new Uint8Array(16);
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
const aes = (usages = ["encrypt", "decrypt"], extractable = true) =>
  subtle.importKey("raw", DATA, "AES-GCM", extractable, usages);

const METHODS = {
  encrypt: 3, decrypt: 3, sign: 3, verify: 4, digest: 2, generateKey: 3, deriveKey: 5, deriveBits: 2, importKey: 5,
  exportKey: 2, wrapKey: 4, unwrapKey: 7,
};

export const tests = {
  "interfaces and their shape": () => {
    equal(Object.prototype.toString.call(subtle), "[object SubtleCrypto]");
    equal(crypto.subtle, crypto.subtle);
    throws(() => new SubtleCrypto(), TypeError);
    throws(() => new CryptoKey(), TypeError);
    throws(() => new Crypto(), TypeError);
    throws(() => Crypto.prototype.subtle, TypeError);
    for (const [name, length] of Object.entries(METHODS)) {
      equal(subtle[name].length, length, name);
      ok(Object.keys(SubtleCrypto.prototype).includes(name));
    }
    equal(Object.keys(subtle).length, 0);
  },
  "methods reject wrong receivers instead of throwing": async () => {
    for (const name of Object.keys(METHODS)) {
      await rejects(subtle[name](), TypeError, name);
      await rejects(subtle[name].call({}, "SHA-1", DATA, DATA, DATA, DATA, DATA, DATA), TypeError, name);
      await rejects(subtle[name](null, null, null, null, null, null, null), undefined, name);
    }
  },
  "the attributes of a key": async () => {
    const key = await aes(["decrypt", "encrypt", "encrypt"]);
    equal(key.type, "secret");
    equal(key.extractable, true);
    deepEqual(key.usages, ["encrypt", "decrypt"]);
    equal(key.usages, key.usages);
    equal(key.algorithm, key.algorithm);
    deepEqual(key.algorithm, { name: "AES-GCM", length: 128 });
    equal(Object.prototype.toString.call(key), "[object CryptoKey]");
    equal(Object.keys(key).length, 0);
    equal(JSON.stringify(key), "{}");
    throws(() => CryptoKey.prototype.type, TypeError);
  },
  "changing the visible attributes of a key has no effect": async () => {
    const key = await aes(["encrypt"], false);
    key.usages.push("decrypt");
    key.algorithm.name = "AES-CBC";
    throws(() => {
      key.extractable = true;
    }, TypeError);
    await rejects(subtle.decrypt({ name: "AES-GCM", iv: DATA }, key, new Uint8Array(32)), "InvalidAccessError");
    await rejects(subtle.exportKey("raw", key), "InvalidAccessError");
    ok(await subtle.encrypt({ name: "AES-GCM", iv: DATA }, key, DATA));
    await rejects(subtle.encrypt({ name: "AES-CBC", iv: DATA }, key, DATA), "InvalidAccessError");
    const pair = await subtle.generateKey(
      { name: "RSA-PSS", modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" },
      true,
      ["sign"],
    );
    pair.publicKey.algorithm.publicExponent[0] = 9;
    pair.publicKey.algorithm.hash.name = "SHA-1";
    equal((await subtle.exportKey("jwk", pair.publicKey)).alg, "PS256");
    equal(structuredClone(pair.publicKey).algorithm.publicExponent[0], 1);
  },
  "usages are enforced": async () => {
    const key = await aes(["encrypt"]);
    const params = { name: "AES-GCM", iv: DATA };
    await rejects(subtle.decrypt(params, key, new Uint8Array(32)), "InvalidAccessError");
    await rejects(subtle.wrapKey("raw", key, key, params), "InvalidAccessError");
    await rejects(subtle.unwrapKey("raw", DATA, key, params, "AES-GCM", true, ["encrypt"]), "InvalidAccessError");
    await rejects(subtle.sign("HMAC", key, DATA), "InvalidAccessError");
    await rejects(subtle.importKey("raw", DATA, "AES-GCM", true, ["fly"]), TypeError);
    await rejects(subtle.importKey("raw", DATA, "AES-GCM", true, "encrypt"), TypeError);
    await rejects(subtle.importKey("raw", DATA, "AES-GCM", true, null), TypeError);
    await rejects(subtle.importKey("text", DATA, "AES-GCM", true, ["encrypt"]), TypeError);
    await rejects(subtle.importKey("jwk", DATA, "AES-GCM", true, ["encrypt"]), TypeError);
    await rejects(subtle.importKey("raw", {}, "AES-GCM", true, ["encrypt"]), TypeError);
    const wrapping = await aes(["wrapKey"]);
    await rejects(subtle.wrapKey("raw", await aes(["encrypt"], false), wrapping, params), "InvalidAccessError");
  },
  "names are compared without case, in ASCII alone": async () => {
    equal((await subtle.generateKey({ name: "hMaC", hash: { name: "sHa-1" } }, true, ["sign"])).algorithm.name, "HMAC");
    await rejects(subtle.digest("\u017fha-1", DATA), "NotSupportedError");
    await rejects(subtle.digest(" SHA-1", DATA), "NotSupportedError");
    await rejects(subtle.generateKey("SHA-1", true, ["sign"]), "NotSupportedError");
    await rejects(subtle.digest("constructor", DATA), "NotSupportedError");
    await rejects(subtle.digest("__proto__", DATA), "NotSupportedError");
    await rejects(subtle.generateKey({ name: "ECDSA", namedCurve: "constructor" }, true, ["sign"]), "NotSupportedError");
  },
  "the members of an algorithm are read in order, before the data": async () => {
    const log = [];
    const key = await aes();
    const iv = new Uint8Array(12);
    const data = new Uint8Array([1, 2, 3]);
    const algorithm = {
      get name() { log.push("name"); return "AES-GCM"; },
      get additionalData() { log.push("additionalData"); return undefined; },
      get iv() { log.push("iv"); data[0] = 9; return iv; },
      get tagLength() { log.push("tagLength"); iv.fill(1); return 128; },
    };
    const cipher = await subtle.encrypt(algorithm, key, data);
    deepEqual(log, ["name", "additionalData", "iv", "tagLength"]);
    const plain = await subtle.decrypt({ name: "AES-GCM", iv: new Uint8Array(12).fill(1) }, key, cipher);
    equal(hex(plain), "090203");
  },
  "errors of normalization come first, all others later": async () => {
    const isLate = async (promise) => {
      let late = false;
      const settled = promise.then(() => late, () => late);
      Promise.resolve().then(() => {
        late = true;
      });
      return settled;
    };
    equal(await isLate(subtle.generateKey("nothing", true, ["sign"])), false);
    equal(await isLate(subtle.generateKey({}, true, ["sign"])), false);
    equal(await isLate(subtle.importKey("raw", {}, "AES-GCM", true, ["encrypt"])), false);
    equal(await isLate(subtle.generateKey({ name: "AES-GCM", length: 128 }, true, ["sign"])), true);
    equal(await isLate(subtle.generateKey({ name: "AES-GCM", length: 128 }, true, ["encrypt"])), true);
    equal(await isLate(aes()), true);
    equal(await isLate(aes([])), true);
    equal(await isLate(subtle.exportKey("raw", await aes())), true);
    equal(await isLate(subtle.digest("SHA-1", DATA)), true);
  },
  "a key can be cloned and stays the same": async () => {
    const key = await aes(["encrypt"], false);
    const { copies } = structuredClone({ copies: [key, key] });
    ok(copies[0] instanceof CryptoKey);
    ok(copies[0] !== key);
    equal(copies[0].extractable, false);
    deepEqual(copies[0].usages, ["encrypt"]);
    const params = { name: "AES-GCM", iv: DATA };
    equal(hex(await subtle.encrypt(params, copies[0], DATA)), hex(await subtle.encrypt(params, key, DATA)));
    await rejects(subtle.exportKey("raw", copies[1]), "InvalidAccessError");
  },
  "an object that imitates a key is refused": async () => {
    const key = await aes();
    const fake = Object.create(CryptoKey.prototype);
    await rejects(subtle.exportKey("raw", fake), TypeError);
    await rejects(subtle.exportKey("raw", new Proxy(key, {})), TypeError);
    await rejects(subtle.exportKey("raw", { __proto__: key }), TypeError);
  },
  "unreferenced keys are freed": async () => {
    // Far more than may exist at once: each takes 1 MB.
    for (let i = 0; i < 300; i++) {
      await subtle.importKey("raw", new Uint8Array(1_000_000), "HKDF", false, ["deriveBits"]);
      if (i % 50 === 49) await new Promise((resolve) => setTimeout(resolve, 1));
    }
  },
  "referenced keys are limited": async () => {
    const held = [];
    const error = await rejects(async () => {
      for (let i = 0; i < 100; i++) {
        held.push(await subtle.importKey("raw", new Uint8Array(1_000_000), "HKDF", false, ["deriveBits"]));
      }
    }, "OperationError");
    ok(error.message.includes("Too many keys"));
    ok(held.length > 30);
  },
  "a worker that breaks the built-ins affects only itself": async () => {
    const { includes, filter, push } = Array.prototype;
    const { then } = Promise.prototype;
    Object.defineProperty(Object.prototype, "d", { value: "AQAB", configurable: true });
    Object.defineProperty(Object.prototype, "hash", { value: "nothing", configurable: true });
    try {
      await rejects(subtle.importKey("jwk", {}, "AES-GCM", true, ["encrypt"]), "DataError");
      ok(await aes());
      Array.prototype.includes = () => true;
      Array.prototype.filter = () => null;
      Array.prototype.push = () => 0;
      await aes().then(undefined, () => {});
    } finally {
      Object.assign(Array.prototype, { includes, filter, push });
      for (const [name, value] of Object.entries({ includes, filter, push })) {
        Object.defineProperty(Array.prototype, name, { value, enumerable: false, writable: true, configurable: true });
      }
      Promise.prototype.then = then;
      delete Object.prototype.d;
      delete Object.prototype.hash;
    }
    ok(await aes());
  },
  "a response may wait for work on another thread": async () => {
    const started = Date.now();
    const algorithm = { name: "RSA-OAEP", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" };
    const pairs = await Promise.all([1, 2].map(() => subtle.generateKey(algorithm, true, ["decrypt"])));
    ok(pairs.every((pair) => pair.privateKey.type === "private"));
    ok(Date.now() >= started);
  },
};
