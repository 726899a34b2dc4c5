import { Buffer } from "node:buffer";
import crypto, { createHash, createHmac } from "node:crypto";
import { promisify } from "node:util";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

// https://www.rfc-editor.org/rfc/rfc8032#section-7.1, test 1, in PKCS #8.
const ED25519 = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n";

async function makePair(algorithm, usages = ["sign", "verify"]) {
  const { privateKey, publicKey } = await globalThis.crypto.subtle.generateKey(algorithm, true, usages);
  const pem = (label, der) => `-----BEGIN ${label}-----\n${Buffer.from(der).toString("base64")}\n-----END ${label}-----`;
  return {
    privateKey: pem("PRIVATE KEY", await globalThis.crypto.subtle.exportKey("pkcs8", privateKey)),
    publicKey: pem("PUBLIC KEY", await globalThis.crypto.subtle.exportKey("spki", publicKey)),
  };
}

export const tests = {
  "hashes": () => {
    equal(createHash("sha256").update("abc").digest("hex"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    equal(createHash("md5").update("").digest("hex"), "d41d8cd98f00b204e9800998ecf8427e");
    equal(createHash("SHA-1").update("a").update(Buffer.from("bc")).digest("base64"), "qZk+NkcGgWq6PiVxeFDCbJzQ2J0=");
    equal(createHash("sha3-256").update("abc").digest("hex"), "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532");
    equal(createHash("ripemd160").update("abc").digest("hex"), "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc");
    equal(crypto.hash("sha1", "abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    const first = createHash("sha1").update("ab");
    const copy = first.copy();
    equal(first.update("c").digest("hex"), crypto.hash("sha1", "abc"));
    equal(copy.update("d").digest("hex"), crypto.hash("sha1", "abd"));
    equal(throws(() => first.update("x")).code, "ERR_CRYPTO_HASH_FINALIZED");
    throws(() => createHash("sha0"));
    equal(throws(() => createHash("sha256").update(5)).code, "ERR_INVALID_ARG_TYPE");
  },
  "a hash can be used as a stream": async () => {
    const hash = createHash("sha1");
    await pipeline(Readable.from(["a", "bc"]), hash);
    equal(hash.read().toString("hex"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  },
  "HMAC with short, long and empty keys": () => {
    // https://www.rfc-editor.org/rfc/rfc4231#section-4.3 and #section-4.7
    equal(
      createHmac("sha256", "Jefe").update("what do ya want ").update("for nothing?").digest("hex"),
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    );
    equal(
      createHmac("sha256", Buffer.alloc(131, 0xaa)).update("Test Using Larger Than Block-Size Key - Hash Key First").digest("hex"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    );
    equal(createHmac("md5", "").update("").digest("hex"), "74e6f7298a9c2d168935f58c001bad88");
    const key = crypto.createSecretKey(Buffer.from("Jefe"));
    equal(createHmac("sha1", key).update("x").digest("hex"), createHmac("sha1", "Jefe").update("x").digest("hex"));
  },
  "random values and comparison": async () => {
    equal(crypto.randomBytes(70000).length, 70000);
    equal((await promisify(crypto.randomBytes)(8)).length, 8);
    for (let round = 0; round < 50; round++) {
      const number = crypto.randomInt(3, 6);
      ok(number >= 3 && number < 6);
    }
    ok(/^[0-9a-f-]{36}$/.test(crypto.randomUUID()));
    equal(crypto.timingSafeEqual(Buffer.from("ab"), Buffer.from("ab")), true);
    equal(throws(() => crypto.timingSafeEqual(Buffer.from("ab"), Buffer.from("a"))).code, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH");
    equal(crypto.webcrypto, globalThis.crypto);
  },
  "keys from passwords": async () => {
    // https://www.rfc-editor.org/rfc/rfc6070#section-2 and https://www.rfc-editor.org/rfc/rfc7914#section-12
    equal(crypto.pbkdf2Sync("password", "salt", 4096, 20, "sha1").toString("hex"), "4b007901b765489abead49d926f721d065a429c1");
    const later = await promisify(crypto.pbkdf2)("password", "salt", 4096, 20, "sha1");
    equal(later.toString("hex"), "4b007901b765489abead49d926f721d065a429c1");
    equal(
      crypto.scryptSync("", "", 64, { N: 16, r: 1, p: 1 }).toString("hex"),
      "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906",
    );
    equal((await promisify(crypto.scrypt)("pass", "salt", 32)).length, 32);
    // https://www.rfc-editor.org/rfc/rfc5869#appendix-A.1
    const okm = crypto.hkdfSync("sha256", Buffer.alloc(22, 0x0b), Buffer.from("000102030405060708090a0b0c", "hex"), Buffer.from("f0f1f2f3f4f5f6f7f8f9", "hex"), 42);
    equal(Buffer.from(okm).toString("hex"), "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
    throws(() => crypto.pbkdf2Sync("p", "s", 1e9, 20, "sha1"), RangeError);
    throws(() => crypto.scryptSync("p", "s", 20, { N: 2 ** 24 }), RangeError);
    await rejects(promisify(crypto.scrypt)("p", "s", 20, { N: 2 ** 24 }));
  },
  "ciphers": () => {
    const key = Buffer.alloc(32, 1);
    const iv = Buffer.alloc(16, 2);
    for (const name of ["aes-256-cbc", "aes-256-ctr"]) {
      const cipher = crypto.createCipheriv(name, key, iv);
      const hidden = cipher.update("secret ", "utf8", "hex") + cipher.update("text", "utf8", "hex") + cipher.final("hex");
      const decipher = crypto.createDecipheriv(name, key, iv);
      equal(decipher.update(hidden, "hex", "utf8") + decipher.final("utf8"), "secret text");
    }
    const gcm = crypto.createCipheriv("aes-256-gcm", key, iv.subarray(4)).setAAD(Buffer.from("header"));
    const sealed = Buffer.concat([gcm.update("hello"), gcm.final()]);
    const open = (tag) => {
      const decipher = crypto.createDecipheriv("aes-256-gcm", key, iv.subarray(4)).setAAD(Buffer.from("header")).setAuthTag(tag);
      return Buffer.concat([decipher.update(sealed), decipher.final()]).toString();
    };
    equal(open(gcm.getAuthTag()), "hello");
    throws(() => open(Buffer.alloc(16)));
    const wrong = crypto.createDecipheriv("aes-256-cbc", key, iv);
    wrong.update(Buffer.alloc(16));
    throws(() => wrong.final());
    throws(() => crypto.createCipheriv("aes-256-cbc", Buffer.alloc(5), iv), RangeError);
    equal(throws(() => crypto.createCipheriv("rot13", key, iv)).code, "ERR_CRYPTO_UNKNOWN_CIPHER");
  },
  "signatures of Ed25519": () => {
    const key = crypto.createPrivateKey(ED25519);
    equal(key.asymmetricKeyType, "ed25519");
    const signature = crypto.sign(null, Buffer.alloc(0), key);
    equal(
      signature.toString("hex"),
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    );
    equal(crypto.verify(null, Buffer.alloc(0), crypto.createPublicKey(key), signature), true);
    equal(crypto.verify(null, Buffer.from("x"), key, signature), false);
    equal(crypto.createPrivateKey(key.export({ format: "pem", type: "pkcs8" })).equals(key), true);
  },
  "signatures of ECDSA and RSA": async () => {
    const ec = await makePair({ name: "ECDSA", namedCurve: "P-256" });
    const signature = crypto.createSign("SHA256").update("da").update("ta").sign(ec.privateKey);
    equal(signature[0], 0x30);
    equal(crypto.createVerify("SHA256").update("data").verify(ec.publicKey, signature), true);
    equal(crypto.createVerify("SHA256").update("date").verify(ec.publicKey, signature), false);
    const raw = crypto.sign("sha256", Buffer.from("data"), { key: ec.privateKey, dsaEncoding: "ieee-p1363" });
    equal(raw.length, 64);
    equal(crypto.createPublicKey(ec.privateKey).asymmetricKeyDetails.namedCurve, "prime256v1");
    const rsa = await makePair({ name: "RSASSA-PKCS1-v1_5", modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" });
    const key = crypto.createPrivateKey(rsa.privateKey);
    deepEqual([key.asymmetricKeyDetails.modulusLength, Number(key.asymmetricKeyDetails.publicExponent)], [1024, 65537]);
    const signed = crypto.createSign("RSA-SHA256").update("data").sign(key, "base64");
    equal(crypto.createVerify("RSA-SHA256").update("data").verify(rsa.publicKey, signed, "base64"), true);
    const { RSA_PKCS1_PSS_PADDING: padding } = crypto.constants;
    const pss = crypto.sign("sha256", Buffer.from("data"), { key, padding, saltLength: -1 });
    equal(crypto.verify("sha256", Buffer.from("data"), { key: rsa.publicKey, padding, saltLength: -1 }, pss), true);
    throws(() => crypto.createPrivateKey("no key"));
    throws(() => crypto.createPublicKey("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"));
  },
  "pairs of keys are made": async () => {
    const data = Buffer.from("data");
    const options = { rsa: { modulusLength: 1024 }, ec: { namedCurve: "P-384" }, ed25519: undefined };
    for (const [type, given] of Object.entries(options)) {
      for (const pair of [crypto.generateKeyPairSync(type, given), await promisify(crypto.generateKeyPair)(type, given)]) {
        deepEqual([pair.publicKey.type, pair.privateKey.type, pair.publicKey.asymmetricKeyType], ["public", "private", type]);
        const hash = type === "ed25519" ? null : "sha256";
        const signature = crypto.sign(hash, data, pair.privateKey);
        equal(crypto.verify(hash, data, pair.publicKey, signature), true);
        const { d } = pair.publicKey.export({ format: "jwk" });
        equal(d, undefined);
        throws(() => crypto.sign(hash, data, pair.publicKey));
      }
    }
    equal(crypto.generateKeyPairSync("x25519").publicKey.export({ format: "jwk" }).crv, "X25519");
    await new Promise((resolve, reject) => {
      crypto.generateKeyPair("ed25519", (error, publicKey, privateKey) => {
        if (error === null && publicKey.type === "public" && privateKey.type === "private") resolve();
        else reject(error);
      });
    });
  },
  "key pairs have the requested format": () => {
    const make = (type, publicType, privateType, more) =>
      crypto.generateKeyPairSync(type, {
        ...more,
        publicKeyEncoding: { type: publicType, format: "pem" },
        privateKeyEncoding: { type: privateType, format: "der" },
      });
    const rsa = make("rsa", "pkcs1", "pkcs1", { modulusLength: 1024, publicExponent: 3 });
    ok(rsa.publicKey.startsWith("-----BEGIN RSA PUBLIC KEY-----\n"));
    const key = crypto.createPrivateKey({ key: rsa.privateKey, format: "der", type: "pkcs1" });
    equal(crypto.createPublicKey(key).equals(crypto.createPublicKey(rsa.publicKey)), true);
    equal(key.asymmetricKeyDetails.publicExponent, 3n);
    const ec = make("ec", "spki", "sec1", { namedCurve: "prime256v1" });
    const secret = crypto.createPrivateKey({ key: ec.privateKey, format: "der", type: "sec1" });
    equal(crypto.createPublicKey(secret).equals(crypto.createPublicKey(ec.publicKey)), true);
    for (const pair of [key, secret, crypto.createPrivateKey(ED25519)]) {
      equal(crypto.createPrivateKey({ key: pair.export({ format: "jwk" }), format: "jwk" }).equals(pair), true);
    }
    equal(crypto.generateKeySync("aes", { length: 256 }).symmetricKeySize, 32);
    equal(throws(() => make("ed25519", "pkcs1", "pkcs8")).code, "ERR_CRYPTO_INCOMPATIBLE_KEY_OPTIONS");
    equal(throws(() => crypto.generateKeyPairSync("ec", { namedCurve: "none" })).code, "ERR_CRYPTO_INVALID_CURVE");
    equal(throws(() => crypto.generateKeyPairSync("rsa", { modulusLength: 10000 })).code, "ERR_OUT_OF_RANGE");
    equal(throws(() => crypto.generateKeyPairSync("dsa")).code, "ERR_INVALID_ARG_TYPE");
    const sealed = { type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" };
    const encrypted = crypto.generateKeyPairSync("ed25519", { privateKeyEncoding: sealed }).privateKey;
    equal(crypto.createPrivateKey({ key: encrypted, passphrase: "x" }).asymmetricKeyType, "ed25519");
  },
};
