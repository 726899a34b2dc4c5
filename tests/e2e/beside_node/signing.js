// node:crypto: signatures by keys of every kind, generation of key pairs, agreement on secrets.
import { Buffer } from "node:buffer";
import crypto from "node:crypto";
import { promisify } from "node:util";
import { KEYS } from "./key_texts.js";

export const cases = {};

const add = (name, run) => {
  cases[name] = async () => {
    try {
      const result = await run();
      return Buffer.isBuffer(result) ? result.toString("hex") : result;
    } catch (error) {
      return `${error.name} ${error.code} ${/Cannot (destructure|read)/.test(error.message) ? "" : error.message}`;
    }
  };
};

const DATA = Buffer.from("some data");
const SIGNERS = ["rsa", "pss", "pssFree", "dsa", "ec256", "ec384", "k256", "brainpool", "explicit", "ed25519", "ed448", "x25519", "x448", "dh"];
const DIGESTS = ["sha256", "SHA1", "RSA-SHA512", "sha3-256", "md5", "other", null, undefined, 5];
const ways = {
  once: {
    sign: (digest, key) => crypto.sign(digest, DATA, key),
    verify: (digest, key, signature) => crypto.verify(digest, DATA, key, signature),
  },
  later: {
    sign: (digest, key) => promisify(crypto.sign)(digest, DATA, key),
    verify: (digest, key, signature) => promisify(crypto.verify)(digest, DATA, key, signature),
  },
  object: {
    sign: (digest, key) => crypto.createSign(digest).update("some ").update(Buffer.from("data")).sign(key),
    verify: (digest, key, signature) => crypto.createVerify(digest).update(DATA).verify(key, signature),
  },
};
for (const name of SIGNERS) {
  for (const digest of DIGESTS) {
    if (name === "dsa" && digest === "md5") continue; // not allowed, which Node says in several ways
    for (const [way, { sign, verify }] of Object.entries(ways)) {
      for (const dsaEncoding of ["der", "ieee-p1363"]) {
        const key = { key: KEYS[name], dsaEncoding };
        add(`${name} ${digest} ${way} ${dsaEncoding}`, async () => {
          const signature = await sign(digest, key);
          // DER omits leading zeros.
          const length = dsaEncoding === "der" && /dsa|ec|k256|brain|explicit/.test(name) ? "" : signature.length;
          const flipped = Buffer.from(signature);
          flipped[flipped.length - 1] ^= 1;
          return `${length} ${await verify(digest, key, signature)} ${await verify(digest, key, flipped)} ${await verify(digest, key, signature.subarray(0, -1))}`;
        });
        add(`${name} ${digest} ${way} ${dsaEncoding} verify`, () => verify(digest, key, Buffer.alloc(64, 1)));
      }
    }
  }
}
for (const name of ["rsa", "ed25519", "ed448"]) add(`${name} always the same`, () => crypto.sign(name === "rsa" ? "sha256" : null, DATA, KEYS[name]));
for (const key of ["rsa", "pss", "pssFree"]) {
  for (const padding of [undefined, 0, 1, 2, 3, 4, 6, 99, "1", 1.5, null]) {
    for (const saltLength of [undefined, -1, -2, -3, -5, 0, 10, 16, 20, 500, "1", 1.5, null]) {
      const options = { key: KEYS[key], padding, saltLength };
      add(`${key} ${padding} ${saltLength} once`, () => crypto.verify("sha256", DATA, options, crypto.sign("sha256", DATA, options)));
      add(`${key} ${padding} ${saltLength} object`, () => ways.object.verify("sha256", options, ways.object.sign("sha256", options)));
      add(`${key} ${padding} ${saltLength} verify`, () => crypto.verify("sha256", DATA, options, Buffer.alloc(128)));
    }
  }
}
for (const dsaEncoding of ["other", "", 5, null, undefined]) add(`dsaEncoding ${String(dsaEncoding)}`, () => crypto.sign("sha256", DATA, { key: KEYS.ec256, dsaEncoding }).length > 0);
for (const context of [Buffer.from("c"), new Uint8Array(255), new Uint8Array(256), "text", 5, null]) {
  for (const name of ["ed448", "ed25519", "rsa"]) add(`context ${typeof context} ${context?.length} ${name}`, () => crypto.sign(null, DATA, { key: KEYS[name], context }));
}
for (const data of [5, null, undefined, {}, "text", new ArrayBuffer(3), new DataView(new ArrayBuffer(3))]) {
  add(`sign ${Object.prototype.toString.call(data)}`, () => crypto.sign("sha256", data, KEYS.rsa));
  add(`update ${Object.prototype.toString.call(data)}`, () => crypto.createSign("sha256").update(data).sign(KEYS.rsa));
  add(`verify ${Object.prototype.toString.call(data)}`, () => crypto.verify("sha256", DATA, KEYS.rsa, data));
  add(`verify object ${Object.prototype.toString.call(data)}`, () => crypto.createVerify("sha256").update(DATA).verify(KEYS.rsa, data));
  add(`callback ${Object.prototype.toString.call(data)}`, () => crypto.sign("sha256", DATA, KEYS.rsa, data));
}
for (const use of ["sign", "verify"]) {
  const make = () => (use === "sign" ? crypto.createSign("sha256") : crypto.createVerify("sha256"));
  const end = (object) => (use === "sign" ? object.sign(KEYS.rsa, "hex") : object.verify(KEYS.rsa, "00", "hex"));
  add(`${use} twice`, () => {
    const object = make().update("a");
    end(object);
    return end(object);
  });
  add(`${use} then update`, () => {
    const object = make().update("a");
    end(object);
    return object.update("b");
  });
  add(`${use} as a stream`, () => {
    const object = make();
    object.write("a");
    object.end("b");
    return end(object);
  });
  add(`${use} hex of odd length`, () => make().update("abc", "hex"));
  add(`${use} without new`, () => end(crypto[use === "sign" ? "Sign" : "Verify"]("sha256").update("a")));
  add(`${use} instanceof`, () => make() instanceof crypto[use === "sign" ? "Sign" : "Verify"]);
  add(`${use} without a key`, () => (use === "sign" ? make().sign() : make().verify()));
}

// --- Key pairs ---

const OPTIONS = [
  undefined, null, 5, {}, { modulusLength: "5" }, { modulusLength: -1 }, { modulusLength: 1.5 }, { modulusLength: 256 }, { modulusLength: 512, publicExponent: 2 }, { modulusLength: 512, publicExponent: 3 },
  { modulusLength: 512, publicExponent: "3" }, { modulusLength: 512, publicExponent: 1 }, { modulusLength: 512, hashAlgorithm: 5 }, { modulusLength: 512, hashAlgorithm: "other" },
  { modulusLength: 1024, hashAlgorithm: "sha256", saltLength: "5" }, { modulusLength: 1024, hashAlgorithm: "sha256", saltLength: 5 }, { modulusLength: 1024, hashAlgorithm: "sha256", mgf1HashAlgorithm: "other" },
  { modulusLength: 1024, hashAlgorithm: "sha256", mgf1HashAlgorithm: "sha512" }, { modulusLength: 1024, saltLength: -1 }, { namedCurve: "other" }, { namedCurve: 5 }, { namedCurve: "P-256", paramEncoding: "other" },
  { namedCurve: "P-256" }, { namedCurve: "P-521" }, { namedCurve: "secp256k1", paramEncoding: "explicit" }, { namedCurve: "brainpoolP256r1" }, { group: "modp5" }, { group: "other" }, { group: 5 }, { group: "modp5", prime: Buffer.from("a") },
  { group: "modp5", primeLength: 5 }, { group: "modp5", generator: 5 }, { prime: "a" }, { prime: Buffer.from([23]), generator: 5 }, { prime: Buffer.from("a"), primeLength: 2 },
  { prime: crypto.getDiffieHellman("modp2").getPrime() }, { primeLength: "2" }, { primeLength: 64, generator: "5" }, { modulusLength: 512, divisorLength: "5" }, { modulusLength: 512, publicKeyEncoding: 5 },
  { modulusLength: 512, publicKeyEncoding: { type: "spki" } }, { modulusLength: 512, publicKeyEncoding: { type: "pkcs8", format: "pem" } }, { modulusLength: 512, privateKeyEncoding: { type: "sec1", format: "pem" } },
  { modulusLength: 512, privateKeyEncoding: { type: "pkcs8", format: "pem", cipher: "other" } }, { modulusLength: 512, privateKeyEncoding: { type: "pkcs8", format: "pem", cipher: "other", passphrase: "x" } },
  { modulusLength: 1024, namedCurve: "P-256", publicKeyEncoding: { type: "spki", format: "pem" }, privateKeyEncoding: { type: "pkcs8", format: "pem", cipher: "aes-128-cbc", passphrase: "x" } },
  { modulusLength: 1024, namedCurve: "P-256", publicKeyEncoding: { format: "jwk" }, privateKeyEncoding: { format: "jwk" } }, { modulusLength: 512, privateKeyEncoding: { format: "jwk", passphrase: "x" } },
  { modulusLength: 1024, namedCurve: "P-256", publicKeyEncoding: { type: "spki", format: "der" }, privateKeyEncoding: { type: "pkcs8", format: "der" } }, { modulusLength: 512, privateKeyEncoding: 5 },
];
const shape = (key) => {
  if (typeof key === "string") return key.split("\n")[0];
  if (Buffer.isBuffer(key)) return "Buffer";
  if (key.kty !== undefined) return Object.keys(key).join();
  return `${key.type} ${key.asymmetricKeyType} ${JSON.stringify(key.asymmetricKeyDetails, (name, value) => (typeof value === "bigint" ? `${value}` : value))}`;
};
for (const type of ["rsa", "rsa-pss", "dsa", "ec", "ed25519", "ed448", "x25519", "x448", "dh", "ml-dsa-44", "ml-kem-768", "other", 5, undefined]) {
  for (const [index, options] of OPTIONS.entries()) {
    // Parameters of DSA take long to find.
    if (type === "dsa" && options?.modulusLength > 512) continue;
    add(`generateKeyPairSync ${type} ${index}`, () => Object.values(crypto.generateKeyPairSync(type, options)).map(shape).join(" | "));
    if (index % 4 === 0) add(`generateKeyPair ${type} ${index}`, async () => Object.values(await promisify(crypto.generateKeyPair)(type, options)).map(shape).join(" | "));
  }
}
for (const args of [["rsa", { modulusLength: 512 }], ["ed25519"], ["ed25519", {}, 5], ["other", {}, 5]]) add(`generateKeyPair without a callback ${args[0]} ${args.length}`, () => crypto.generateKeyPair(...args));
for (const args of [["aes"], ["aes", {}], ["aes", { length: 5 }], ["aes", { length: 128 }], ["aes", { length: 256 }], ["hmac", { length: 7 }], ["hmac", { length: 8 }], ["hmac", { length: 13 }], ["hmac", { length: 2 ** 31 }], ["hmac", { length: "5" }], ["other", { length: 8 }], [5], ["aes", null], ["aes", []], ["aes", { length: 128.5 }], ["hmac", { length: 11.5 }], ["hmac", { length: -1 }]]) {
  add(`generateKeySync ${JSON.stringify(args)}`, () => crypto.generateKeySync(...args).symmetricKeySize);
  add(`generateKey ${JSON.stringify(args)}`, async () => (await promisify(crypto.generateKey)(...args)).symmetricKeySize);
}
add("generateKey without a callback", () => crypto.generateKey("aes", { length: 128 }));

// --- Agreement ---

const holders = { dh: "dh", ec256: "ec256", ec384: "ec384", k256: "k256", x25519: "x25519", x448: "x448", rsa: "rsa", ed25519: "ed25519" };
for (const one of Object.keys(holders)) {
  for (const other of Object.keys(holders)) {
    const privateKey = () => crypto.createPrivateKey(KEYS[one]);
    const publicKey = () => crypto.createPublicKey(KEYS[other]);
    add(`diffieHellman ${one} ${other}`, () => crypto.diffieHellman({ privateKey: privateKey(), publicKey: publicKey() }));
    add(`diffieHellman later ${one} ${other}`, () => promisify(crypto.diffieHellman)({ privateKey: privateKey(), publicKey: publicKey() }));
    add(`diffieHellman swapped ${one} ${other}`, () => crypto.diffieHellman({ privateKey: publicKey(), publicKey: privateKey() }));
  }
}
for (const wrong of [undefined, null, 5, [], {}, { privateKey: 5 }, { privateKey: "x", publicKey: "y" }]) add(`diffieHellman ${JSON.stringify(wrong)}`, () => crypto.diffieHellman(wrong));
add("diffieHellman with a secret", () => crypto.diffieHellman({ privateKey: crypto.createPrivateKey(KEYS.x25519), publicKey: crypto.createSecretKey("a") }));
