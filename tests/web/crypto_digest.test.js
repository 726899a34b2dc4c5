// crypto.subtle.digest, HMAC, DigestStream, timingSafeEqual and random values.
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const { subtle } = crypto;
const text = (string) => new TextEncoder().encode(string);
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");

// FIPS 180-4 and RFC 1321: the digests of "abc".
const ABC = {
  MD5: "900150983cd24fb0d6963f7d28e17f72",
  "SHA-1": "a9993e364706816aba3e25717850c26c9cd0d89d",
  "SHA-256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  "SHA-384": "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
  "SHA-512":
    "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
};

export const tests = {
  "digests of abc": async () => {
    for (const [name, digest] of Object.entries(ABC)) {
      equal(hex(await subtle.digest(name, text("abc"))), digest, name);
      equal(hex(await subtle.digest({ name: name.toLowerCase() }, text("abc").buffer)), digest, name);
    }
  },
  "a digest of nothing and of a part of a buffer": async () => {
    const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    equal(hex(await subtle.digest("SHA-256", new Uint8Array(0))), empty);
    equal(hex(await subtle.digest("SHA-256", new ArrayBuffer(0))), empty);
    const part = text("xxabcxx").subarray(2, 5);
    equal(hex(await subtle.digest("SHA-256", part)), ABC["SHA-256"]);
    equal(hex(await subtle.digest("SHA-256", new DataView(part.buffer, 2, 3))), ABC["SHA-256"]);
  },
  "large data is copied and hashed on another thread": async () => {
    const data = new Uint8Array(9_000_000);
    const promise = subtle.digest("SHA-1", data);
    data.fill(255);
    const small = new crypto.DigestStream("SHA-1");
    const writer = small.getWriter();
    for (let i = 0; i < 9; i++) writer.write(new Uint8Array(1_000_000));
    await writer.close();
    equal(hex(await promise), hex(await small.digest));
  },
  "a buffer detached on the way counts as empty": async () => {
    const data = text("abc");
    const name = () => {
      structuredClone(data.buffer, { transfer: [data.buffer] });
      return "SHA-256";
    };
    const digest = await subtle.digest({ get name() { return name(); } }, data);
    equal(hex(digest), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  },
  "an invalid buffer or hash is refused": async () => {
    await rejects(subtle.digest("SHA-256", "abc"), TypeError);
    await rejects(subtle.digest("SHA-256", [1, 2]), TypeError);
    await rejects(subtle.digest("SHA-256", new ArrayBuffer(4, { maxByteLength: 8 })), TypeError);
    await rejects(subtle.digest("SHA-257", text("")), "NotSupportedError");
    await rejects(subtle.digest("HMAC", text("")), "NotSupportedError");
    await rejects(subtle.digest({}, text("")), TypeError);
    await rejects(subtle.digest("SHA-256"), TypeError);
    await rejects(subtle.digest({ get name() { throw new RangeError("mine"); } }, text("")), RangeError);
  },
  "HMAC: RFC 4231, test case 2": async () => {
    const expected = {
      "SHA-256": "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
      "SHA-384": "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
      "SHA-512":
        "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
    };
    for (const [hash, mac] of Object.entries(expected)) {
      const key = await subtle.importKey("raw", text("Jefe"), { name: "HMAC", hash }, false, ["sign", "verify"]);
      const data = text("what do ya want for nothing?");
      const signature = await subtle.sign("HMAC", key, data);
      equal(hex(signature), mac);
      equal(await subtle.verify("hmac", key, signature, data), true);
      equal(await subtle.verify("HMAC", key, signature, text("something else")), false);
      equal(await subtle.verify("HMAC", key, signature.slice(1), data), false);
      equal(await subtle.verify("HMAC", key, new ArrayBuffer(0), data), false);
    }
  },
  "HMAC keys: lengths, formats, errors": async () => {
    const made = await subtle.generateKey({ name: "HMAC", hash: "SHA-384" }, true, ["sign"]);
    deepEqual(made.algorithm, { name: "HMAC", length: 1024, hash: { name: "SHA-384" } });
    equal((await subtle.exportKey("raw", made)).byteLength, 128);
    const jwk = await subtle.exportKey("jwk", made);
    equal(jwk.alg, "HS384");
    deepEqual(jwk.key_ops, ["sign"]);
    const algorithm = { name: "HMAC", hash: "SHA-384" };
    const back = await subtle.importKey("jwk", jwk, algorithm, true, ["sign"]);
    equal(hex(await subtle.exportKey("raw", back)), hex(await subtle.exportKey("raw", made)));
    await rejects(subtle.importKey("jwk", jwk, { name: "HMAC", hash: "SHA-1" }, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("jwk", { ...jwk, k: "=" }, algorithm, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("jwk", { ...jwk, kty: "RSA" }, algorithm, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("raw", new Uint8Array(0), algorithm, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("spki", new Uint8Array(9), algorithm, true, ["sign"]), "NotSupportedError");
    await rejects(subtle.importKey("raw", new Uint8Array(9), { ...algorithm, length: 64 }, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("raw", new Uint8Array(9), algorithm, true, ["encrypt"]), "SyntaxError");
    await rejects(subtle.importKey("raw", new Uint8Array(9), algorithm, true, []), "SyntaxError");
    await rejects(subtle.generateKey({ name: "HMAC", hash: "SHA-1", length: 0 }, true, ["sign"]), "OperationError");
    await rejects(subtle.generateKey({ name: "HMAC", hash: "SHA-1", length: 2 ** 32 - 1 }, true, ["sign"]), "OperationError");
    await rejects(subtle.generateKey({ name: "HMAC", hash: "MD5" }, true, ["sign"]), "NotSupportedError");
  },
  "timingSafeEqual compares bytes of equal length": () => {
    equal(subtle.timingSafeEqual(text("abc"), text("abc").buffer), true);
    equal(subtle.timingSafeEqual(text("abc"), text("abd")), false);
    equal(subtle.timingSafeEqual(new ArrayBuffer(0), new Uint8Array(0)), true);
    throws(() => subtle.timingSafeEqual(text("abc"), text("ab")), TypeError);
    throws(() => subtle.timingSafeEqual("abc", "abc"), TypeError);
  },
  "a DigestStream hashes the data piped into it": async () => {
    const stream = new crypto.DigestStream("SHA-256");
    ok(stream instanceof WritableStream);
    await new Response("abc").body.pipeTo(stream);
    equal(hex(await stream.digest), ABC["SHA-256"]);
    equal(stream.bytesWritten, 3n);
    const strings = new crypto.DigestStream({ name: "md5" });
    const writer = strings.getWriter();
    await writer.write("a");
    await writer.write(new DataView(text("bc").buffer));
    await writer.close();
    equal(hex(await strings.digest), ABC.MD5);
  },
  "a DigestStream that fails rejects its digest": async () => {
    throws(() => new crypto.DigestStream("SHA-3"), "NotSupportedError");
    throws(() => new crypto.DigestStream(), TypeError);
    const aborted = new crypto.DigestStream("SHA-1");
    await aborted.abort(new Error("enough"));
    equal((await rejects(aborted.digest)).message, "enough");
    const wrong = new crypto.DigestStream("SHA-1");
    await rejects(wrong.getWriter().write(5), TypeError);
    await rejects(wrong.digest, TypeError);
  },
  "random values of every kind of integer": () => {
    const bytes = crypto.getRandomValues(new Uint8Array(65536));
    ok(new Set(bytes).size > 200);
    ok(crypto.getRandomValues(new BigUint64Array(2)).some((value) => value !== 0n));
    throws(() => crypto.getRandomValues(new Uint8Array(65537)), "QuotaExceededError");
    throws(() => crypto.getRandomValues(new Float64Array(1)), "TypeMismatchError");
  },
};
