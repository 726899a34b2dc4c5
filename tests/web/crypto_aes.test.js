// AES-GCM, AES-CBC, AES-CTR and AES-KW. Expected values without a source are those of Node's own implementation.
import { deepEqual, equal, rejects } from "./assert.js";

const { subtle } = crypto;
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
const bytes = (string) => Uint8Array.from(string.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const MESSAGE = new TextEncoder().encode("The quick brown fox");
const COUNTING = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const BOTH = ["encrypt", "decrypt"];

const keyOf = (name, length, usages = BOTH) =>
  subtle.importKey("raw", bytes(COUNTING).subarray(0, length / 8), name, true, usages);

async function expectCipher(algorithm, key, plain, cipher) {
  equal(hex(await subtle.encrypt(algorithm, key, plain)), cipher);
  equal(hex(await subtle.decrypt(algorithm, key, bytes(cipher))), hex(plain));
}

export const tests = {
  "GCM, with additional data and with a short tag": async () => {
    const key = await keyOf("AES-GCM", 128);
    const iv = bytes("101112131415161718191a1b");
    const text = "9046668f7e3adf8c7cfd3f87a850851e5cd30c";
    const additionalData = bytes("aabb");
    await expectCipher({ name: "AES-GCM", iv, additionalData }, key, MESSAGE, `${text}e6c88175340a0a50166f2b7582dd2a28`);
    await expectCipher({ name: "AES-GCM", iv, tagLength: 96 }, key, MESSAGE, `${text}a0188a9eb9159c52d8ff0fb7`);
  },
  "GCM: NIST test case 2": async () => {
    const key = await subtle.importKey("raw", new Uint8Array(16), "AES-GCM", true, BOTH);
    const cipher = "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf";
    await expectCipher({ name: "AES-GCM", iv: new Uint8Array(12) }, key, new Uint8Array(16), cipher);
  },
  "GCM detects changes": async () => {
    const key = await keyOf("AES-GCM", 256);
    const algorithm = { name: "AES-GCM", iv: new Uint8Array(12), additionalData: MESSAGE };
    const cipher = new Uint8Array(await subtle.encrypt(algorithm, key, MESSAGE));
    for (const at of [0, cipher.length - 1]) {
      const changed = cipher.slice();
      changed[at] ^= 1;
      await rejects(subtle.decrypt(algorithm, key, changed), "OperationError");
    }
    await rejects(subtle.decrypt({ ...algorithm, additionalData: undefined }, key, cipher), "OperationError");
    await rejects(subtle.decrypt(algorithm, key, cipher.subarray(0, 15)), "OperationError");
    await rejects(subtle.decrypt(algorithm, key, new Uint8Array(0)), "OperationError");
    await rejects(subtle.encrypt({ ...algorithm, tagLength: 100 }, key, MESSAGE), "OperationError");
    await rejects(subtle.encrypt({ ...algorithm, tagLength: 256 }, key, MESSAGE), TypeError);
    await rejects(subtle.encrypt({ ...algorithm, iv: new Uint8Array(0) }, key, MESSAGE), "OperationError");
    await rejects(subtle.encrypt({ name: "AES-GCM" }, key, MESSAGE), TypeError);
    await rejects(subtle.encrypt({ name: "AES-GCM", iv: "abc" }, key, MESSAGE), TypeError);
  },
  "CBC: RFC 3602, case 1, then 192 bits and padding": async () => {
    const key = await subtle.importKey("raw", bytes("06a9214036b8a15b512e03d534120006"), "AES-CBC", true, BOTH);
    const iv = bytes("3dafba429d9eb430b422da802c9fac41");
    const block = new TextEncoder().encode("Single block msg");
    const cipher = hex(await subtle.encrypt({ name: "AES-CBC", iv }, key, block));
    equal(cipher.slice(0, 32), "e353779c1079aeb82708942dbe77181a");
    equal(cipher.length, 64);
    const algorithm = { name: "AES-CBC", iv: bytes(COUNTING).subarray(0, 16) };
    const expected = "10acab422ae42b3528294371bdbbc03731cbc522c944bb225d12d47f01ce875d";
    await expectCipher(algorithm, await keyOf("AES-CBC", 192), MESSAGE, expected);
  },
  "CBC refuses a wrong iv and bad padding": async () => {
    const key = await keyOf("AES-CBC", 128);
    await rejects(subtle.encrypt({ name: "AES-CBC", iv: new Uint8Array(15) }, key, MESSAGE), "OperationError");
    await rejects(subtle.decrypt({ name: "AES-CBC", iv: new Uint8Array(16) }, key, new Uint8Array(16)), "OperationError");
    await rejects(subtle.decrypt({ name: "AES-CBC", iv: new Uint8Array(16) }, key, new Uint8Array(15)), "OperationError");
  },
  "CTR counts in the given number of bits": async () => {
    const key = await keyOf("AES-CTR", 256);
    const counter = new Uint8Array(16).fill(255);
    const zeros = new Uint8Array(40);
    const first = "e999e41d4ca770da5387117b5d8f57ee";
    const rest = {
      8: "99f71d26e337eddbf672d11bc24709f496c341f40d074c38",
      64: "91658d77eba9ef4e2a4d5619c6c186b7d04cf3ddafe859b4",
      128: "f29000b62a499fd0a9f39a6add2e7780f05d76ae4ab99fe5",
    };
    for (const length of [8, 64, 128]) {
      await expectCipher({ name: "AES-CTR", counter, length }, key, zeros, first + rest[length]);
    }
  },
  "CTR never uses a counter twice": async () => {
    const key = await keyOf("AES-CTR", 128);
    const counter = new Uint8Array(16).fill(255);
    const algorithm = { name: "AES-CTR", counter, length: 1 };
    equal((await subtle.encrypt(algorithm, key, new Uint8Array(32))).byteLength, 32);
    await rejects(subtle.encrypt(algorithm, key, new Uint8Array(33)), "OperationError");
    await rejects(subtle.encrypt({ ...algorithm, length: 0 }, key, MESSAGE), "OperationError");
    await rejects(subtle.encrypt({ ...algorithm, length: 129 }, key, MESSAGE), "OperationError");
    await rejects(subtle.encrypt({ ...algorithm, counter: counter.subarray(1) }, key, MESSAGE), "OperationError");
  },
  "KW: RFC 3394, section 4.1": async () => {
    const wrapping = await keyOf("AES-KW", 128, ["wrapKey", "unwrapKey"]);
    const data = bytes("00112233445566778899aabbccddeeff");
    const key = await subtle.importKey("raw", data, "AES-CBC", true, ["encrypt"]);
    const wrapped = await subtle.wrapKey("raw", key, wrapping, "AES-KW");
    equal(hex(wrapped), "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5");
    const back = await subtle.unwrapKey("raw", wrapped, wrapping, "AES-KW", "AES-CBC", true, ["encrypt"]);
    equal(hex(await subtle.exportKey("raw", back)), hex(data));
    const broken = new Uint8Array(wrapped);
    broken[3] ^= 1;
    await rejects(subtle.unwrapKey("raw", broken, wrapping, "AES-KW", "AES-CBC", true, ["encrypt"]), "OperationError");
    await rejects(subtle.encrypt("AES-KW", wrapping, data), "NotSupportedError");
    const odd = await subtle.importKey("raw", bytes("0011223344"), { name: "HMAC", hash: "SHA-1" }, true, ["sign"]);
    await rejects(subtle.wrapKey("raw", odd, wrapping, "AES-KW"), "OperationError");
  },
  "every cipher wraps keys in every format": async () => {
    const params = {
      "AES-GCM": { iv: new Uint8Array(12) },
      "AES-CBC": { iv: new Uint8Array(16) },
      "AES-CTR": { counter: new Uint8Array(16), length: 64 },
      "AES-KW": {},
    };
    const pair = await subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
    const secret = await subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, true, ["sign"]);
    for (const [name, more] of Object.entries(params)) {
      const wrapping = await keyOf(name, 256, ["wrapKey", "unwrapKey"]);
      const algorithm = { name, ...more };
      const wrapped = await subtle.wrapKey("jwk", pair.privateKey, wrapping, algorithm);
      const target = { name: "ECDSA", namedCurve: "P-256" };
      const key = await subtle.unwrapKey("jwk", wrapped, wrapping, algorithm, target, false, ["sign"]);
      equal(key.extractable, false);
      const signature = await subtle.sign({ name: "ECDSA", hash: "SHA-256" }, key, MESSAGE);
      equal(await subtle.verify({ name: "ECDSA", hash: "SHA-256" }, pair.publicKey, signature, MESSAGE), true);
      const raw = await subtle.wrapKey("raw", secret, wrapping, algorithm);
      const hmac = { name: "HMAC", hash: "SHA-256" };
      const back = await subtle.unwrapKey("raw", raw, wrapping, algorithm, hmac, true, ["sign"]);
      equal(hex(await subtle.exportKey("raw", back)), hex(await subtle.exportKey("raw", secret)));
      await rejects(subtle.wrapKey("raw", pair.privateKey, wrapping, algorithm), "InvalidAccessError");
      await rejects(subtle.unwrapKey("jwk", raw, wrapping, algorithm, hmac, true, ["sign"]), "DataError");
    }
  },
  "keys: lengths, formats, errors": async () => {
    for (const name of ["AES-GCM", "AES-CBC", "AES-CTR", "AES-KW"]) {
      const usages = name === "AES-KW" ? ["wrapKey"] : ["encrypt"];
      for (const length of [128, 192, 256]) {
        const key = await subtle.generateKey({ name: name.toLowerCase(), length }, true, usages);
        deepEqual(key.algorithm, { name, length });
        const jwk = await subtle.exportKey("jwk", key);
        equal(jwk.alg, `A${length}${name.slice(4)}`);
        const back = await subtle.importKey("jwk", jwk, name, true, usages);
        equal(hex(await subtle.exportKey("raw", back)), hex(await subtle.exportKey("raw", key)));
        const other = length === 128 ? "A256GCM" : "A128GCM";
        await rejects(subtle.importKey("jwk", { ...jwk, alg: other }, name, true, usages), "DataError");
        await rejects(subtle.importKey("jwk", { ...jwk, ext: false }, name, true, usages), "DataError");
        await rejects(subtle.importKey("jwk", { ...jwk, use: "sig" }, name, true, usages), "DataError");
        await rejects(subtle.importKey("jwk", { ...jwk, key_ops: ["decrypt"] }, name, true, usages), "DataError");
        await rejects(subtle.importKey("jwk", { ...jwk, key_ops: [...usages, ...usages] }, name, true, usages), "DataError");
      }
      await rejects(subtle.generateKey({ name, length: 64 }, true, usages), "OperationError");
      await rejects(subtle.generateKey({ name, length: 70000 }, true, usages), TypeError);
      await rejects(subtle.generateKey({ name }, true, usages), TypeError);
      await rejects(subtle.generateKey({ name, length: 128 }, true, ["sign"]), "SyntaxError");
      await rejects(subtle.generateKey({ name, length: 128 }, true, []), "SyntaxError");
      await rejects(subtle.importKey("raw", new Uint8Array(15), name, true, usages), "DataError");
      await rejects(subtle.importKey("pkcs8", new Uint8Array(16), name, true, usages), "NotSupportedError");
    }
  },
  "large data is copied and encrypted on another thread": async () => {
    const key = await keyOf("AES-CTR", 128);
    const algorithm = { name: "AES-CTR", counter: new Uint8Array(16), length: 64 };
    const data = new Uint8Array(5_000_000).fill(7);
    const promise = subtle.encrypt(algorithm, key, data);
    data.fill(0);
    const plain = new Uint8Array(await subtle.decrypt(algorithm, key, await promise));
    equal(plain.length, 5_000_000);
    equal(plain.every((byte) => byte === 7), true);
  },
};
