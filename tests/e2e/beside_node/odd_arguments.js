// node:crypto: hashes, HMAC, ciphers, key derivation and random values with odd arguments.
import { Buffer } from "node:buffer";
import crypto from "node:crypto";

export const cases = {};

const add = (name, run) => {
  cases[name] = async () => {
    try {
      const result = await run();
      return Buffer.isBuffer(result) ? `Buffer ${result.toString("hex")}` : result;
    } catch (error) {
      return `${error.name} ${error.code} ${error.message}`;
    }
  };
};

const ODD = [
  () => undefined, () => null, () => 5, () => -1, () => 1.5, () => "x", () => "", () => ({}), () => [], () => true, () => NaN, () => Infinity, () => 2 ** 31, () => 2 ** 32, () => 2 ** 53, () => Buffer.alloc(3),
  () => new ArrayBuffer(2), () => 10n, () => () => {},
];
const CIPHERS = [
  ["aes-128-cbc", Buffer.alloc(16), Buffer.alloc(16)], ["aes-256-gcm", Buffer.alloc(32), Buffer.alloc(12)], ["chacha20-poly1305", Buffer.alloc(32), Buffer.alloc(12)], ["aes-128-ecb", Buffer.alloc(16), null],
];
const DERIVATIONS = [["pbkdf2", ["p", "s", 1, 8, "sha1"]], ["hkdf", ["sha1", "k", "s", "i", 8]], ["scrypt", ["p", "s", 8, { N: 16 }]]];

for (const [index, make] of ODD.entries()) {
  const odd = make();
  const isHuge = typeof odd === "number" && (odd > 1e6 || !Number.isInteger(odd));
  add(`randomBytes ${index}`, () => crypto.randomBytes(odd).length);
  add(`randomBytes callback ${index}`, () => (typeof odd === "function" ? 0 : crypto.randomBytes(3, odd)?.length));
  add(`randomFillSync ${index}`, () => crypto.randomFillSync(make()).byteLength);
  add(`randomFill ${index}`, () => crypto.randomFill(make(), () => {}));
  add(`randomFill callback ${index}`, () => crypto.randomFill(Buffer.alloc(3), odd));
  add(`randomFillSync offset ${index}`, () => crypto.randomFillSync(Buffer.alloc(8), odd).length);
  add(`randomFillSync size ${index}`, () => crypto.randomFillSync(Buffer.alloc(8), 1, odd).length);
  add(`randomFillSync elements ${index}`, () => crypto.randomFillSync(new Uint32Array(8), odd).length);
  add(`randomInt ${index}`, () => typeof crypto.randomInt(odd));
  add(`randomInt min ${index}`, () => typeof crypto.randomInt(odd, 10));
  add(`randomInt max ${index}`, () => typeof crypto.randomInt(1, odd));
  add(`randomInt callback ${index}`, () => typeof crypto.randomInt(1, 5, odd));
  add(`randomUUID ${index}`, () => crypto.randomUUID(odd).length);
  add(`randomUUID option ${index}`, () => crypto.randomUUID({ disableEntropyCache: odd }).length);
  add(`timingSafeEqual ${index}`, () => crypto.timingSafeEqual(odd, Buffer.alloc(3)));
  add(`timingSafeEqual second ${index}`, () => crypto.timingSafeEqual(Buffer.alloc(3), odd));
  for (const name of ["createHash", "createHmac", "createCipheriv", "createDecipheriv", "getCipherInfo"]) add(`${name} ${index}`, () => typeof crypto[name](odd));
  add(`createHash outputLength ${index}`, () => crypto.createHash("sha1", { outputLength: odd }).digest("hex"));
  add(`hash algorithm ${index}`, () => crypto.hash(odd, "x"));
  add(`hash input ${index}`, () => crypto.hash("sha1", odd));
  add(`hash options ${index}`, () => crypto.hash("sha1", "x", odd));
  add(`hash encoding ${index}`, () => crypto.hash("sha1", "x", { outputEncoding: odd }));
  add(`update ${index}`, () => crypto.createHash("sha1").update(odd).digest("hex"));
  add(`update encoding ${index}`, () => crypto.createHash("sha1").update("616263", odd).digest("hex"));
  add(`digest ${index}`, () => crypto.createHash("sha1").update("x").digest(odd));
  add(`createHmac key ${index}`, () => crypto.createHmac("sha1", odd).update("x").digest("hex"));
  add(`createHmac update ${index}`, () => crypto.createHmac("sha1", "k").update(odd).digest("hex"));
  add(`createHmac digest ${index}`, () => crypto.createHmac("sha1", "k").update("x").digest(odd));
  for (const [name, args] of DERIVATIONS) {
    for (let at = 0; at < args.length; at++) {
      // Node ends with an assertion, or computes for long.
      if (isHuge && (name === "hkdf" || typeof args[at] === "number")) continue;
      const given = args.with(at, odd);
      add(`${name}Sync ${at} ${index}`, () => Buffer.from(crypto[`${name}Sync`](...given)).toString("hex"));
      if (typeof odd === "function") continue;
      add(`${name} ${at} ${index}`, () => new Promise((resolve, reject) => crypto[name](...given, (error, result) => (error ? reject(error) : resolve(Buffer.from(result).toString("hex"))))));
    }
    if (typeof odd !== "function") add(`${name} callback ${index}`, () => crypto[name](...args, odd));
  }
  for (const option of ["N", "r", "p", "maxmem", "cost", "blockSize", "parallelization"]) {
    add(`scrypt twice ${option} ${index}`, () => crypto.scryptSync("p", "s", 8, { N: 16, r: 1, p: 1, [option]: odd }).length);
  }
  for (const [which, args] of CIPHERS.entries()) {
    for (let at = 1; at < 3; at++) add(`createCipheriv ${which} ${at} ${index}`, () => typeof crypto.createCipheriv(...args.with(at, odd)));
    if (typeof odd !== "bigint") add(`authTagLength ${which} ${index}`, () => typeof crypto.createCipheriv(...args, { authTagLength: odd }));
    add(`cipher update ${which} ${index}`, () => crypto.createCipheriv(...args).update(odd));
    add(`cipher update encoding ${which} ${index}`, () => crypto.createCipheriv(...args).update("61", odd));
    add(`cipher setAAD ${which} ${index}`, () => typeof crypto.createCipheriv(...args).setAAD(odd));
    add(`decipher setAuthTag ${which} ${index}`, () => typeof crypto.createDecipheriv(...args).setAuthTag(odd));
    add(`setAutoPadding ${which} ${index}`, () => typeof crypto.createCipheriv(...args).setAutoPadding(odd));
  }
}
for (const [name, ...args] of CIPHERS.slice(1, 3)) {
  for (const length of [0, 1, 4, 8, 12, 13, 15, 16, 17, 32]) {
    add(`${name} setAuthTag ${length}`, () => typeof crypto.createDecipheriv(name, ...args).setAuthTag(Buffer.alloc(length)));
    add(`${name} authTagLength ${length}`, () => {
      const cipher = crypto.createCipheriv(name, ...args, { authTagLength: length });
      cipher.update("a");
      cipher.final();
      return cipher.getAuthTag();
    });
  }
}
for (const use of ["createHash", "createHmac"]) {
  for (const act of ["update", "digest", "copy"]) add(`${use} ${act} after the end`, () => {
    const object = crypto[use]("sha1", "k");
    object.digest();
    return typeof object[act]?.("a");
  });
}
add("constants", () => JSON.stringify(Object.entries(crypto.constants).filter(([name]) => /RSA|POINT|DH_|ENGINE/.test(name)).sort()));
