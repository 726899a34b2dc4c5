// node:crypto: keys of every kind in every format, and their errors.
import { Buffer } from "node:buffer";
import crypto from "node:crypto";
import { KEYS } from "./key_texts.js";

export const cases = {};

function show(value) {
  if (Buffer.isBuffer(value)) return value.toString("hex");
  if (value instanceof crypto.KeyObject) return `${value.constructor.name} ${value.type} ${value.asymmetricKeyType} ${value.symmetricKeySize} ${details(value)}`;
  return typeof value === "object" ? JSON.stringify(value) : value;
}

function details({ asymmetricKeyDetails }) {
  return JSON.stringify(asymmetricKeyDetails, (name, value) => (typeof value === "bigint" ? `${value}` : value));
}

const add = (name, run) => {
  cases[name] = async () => {
    try {
      return show(await run());
    } catch (error) {
      // A property that is read from null has V8's text, which names a variable.
      return `${error.name} ${error.code} ${/Cannot (destructure|read)/.test(error.message) ? "" : error.message} ${error.library} ${error.reason}`;
    }
  };
};

// Node may report an error of an earlier suite in its next call.
cases["an earlier error"] = () => {
  try {
    crypto.createPrivateKey(KEYS.rsa);
  } catch {
    return "read";
  }
  return "read";
};

const PLAIN = Object.keys(KEYS).filter((name) => !/Encrypted|Old/.test(name));
const ENCODINGS = ["pkcs1", "pkcs8", "spki", "sec1", undefined, "other"];
const FORMATS = ["pem", "der", "jwk", undefined, "other"];

for (const name of PLAIN) {
  const privateKey = () => crypto.createPrivateKey(KEYS[name]);
  const publicKey = () => crypto.createPublicKey(KEYS[name]);
  add(`${name} private`, privateKey);
  add(`${name} public`, publicKey);
  add(`${name} equal`, () => `${privateKey().equals(privateKey())} ${publicKey().equals(publicKey())} ${privateKey().equals(publicKey())}`);
  for (const format of FORMATS) {
    for (const type of ENCODINGS) {
      add(`${name} export private ${format} ${type}`, () => privateKey().export({ format, type }));
      add(`${name} export public ${format} ${type}`, () => publicKey().export({ format, type }));
      if (format !== "pem" && format !== "der") continue;
      add(`${name} back private ${format} ${type}`, () => crypto.createPrivateKey({ key: privateKey().export({ format, type }), format, type }));
      add(`${name} back public ${format} ${type}`, () => crypto.createPublicKey({ key: publicKey().export({ format, type }), format, type }));
      add(`${name} public of private ${format} ${type}`, () => crypto.createPublicKey({ key: privateKey().export({ format, type }), format, type }));
      add(`${name} private of public ${format} ${type}`, () => crypto.createPrivateKey({ key: publicKey().export({ format, type }), format, type }));
      add(`${name} cut ${format} ${type}`, () => crypto.createPrivateKey({ key: privateKey().export({ format, type }).slice(0, 80), format, type }));
      add(`${name} encrypted ${format} ${type}`, () => {
        const options = { format, type, cipher: "aes-128-cbc", passphrase: "p" };
        return crypto.createPrivateKey({ key: privateKey().export(options), ...options }).equals(privateKey());
      });
    }
  }
  add(`${name} jwk`, () => crypto.createPrivateKey({ key: privateKey().export({ format: "jwk" }), format: "jwk" }));
  add(`${name} jwk is equal`, () => crypto.createPrivateKey({ key: privateKey().export({ format: "jwk" }), format: "jwk" }).equals(privateKey()));
  add(`${name} public jwk`, () => crypto.createPublicKey({ key: publicKey().export({ format: "jwk" }), format: "jwk" }));
  add(`${name} public of jwk`, () => crypto.createPublicKey({ key: privateKey().export({ format: "jwk" }), format: "jwk" }).equals(publicKey()));
  // Keys of different kinds are not compared: Node then reports the error in the next call.
  add(`${name} equals a secret`, () => privateKey().equals(crypto.createSecretKey("a")));
}

for (const name of ["rsaEncrypted", "rsaOld", "ec256Encrypted", "ec256Old"]) {
  for (const passphrase of [undefined, "secret", "wrong", "", Buffer.from("secret"), "x".repeat(2000), 5, null]) {
    add(`${name} ${String(passphrase).slice(0, 9)}`, () => crypto.createPrivateKey({ key: KEYS[name], passphrase }));
    add(`${name} public ${String(passphrase).slice(0, 9)}`, () => crypto.createPublicKey({ key: KEYS[name], passphrase }));
    add(`${name} sign ${String(passphrase).slice(0, 9)}`, () => crypto.sign("sha256", Buffer.from("x"), { key: KEYS[name], passphrase }).length > 0);
  }
}
for (const cipher of ["aes-256-cbc", "des-ede3-cbc", "aes-128-ctr", "aes-128-gcm", "other", "", 5, null, undefined]) {
  for (const passphrase of ["p", Buffer.from("p"), "", undefined, null, 5]) {
    for (const type of ["pkcs8", "pkcs1"]) {
      add(`cipher ${cipher} ${String(passphrase)} ${type}`, () => {
        const options = { format: "pem", type, cipher, passphrase };
        const text = crypto.createPrivateKey(KEYS.rsa).export(options);
        return `${text.split("\n").slice(0, 2).join(" ").slice(0, 60).replace(/ M.*/, "")} ${crypto.createPrivateKey({ key: text, passphrase: passphrase ?? undefined }).type}`;
      });
    }
  }
}

const rsa = () => crypto.createPrivateKey(KEYS.rsa);
const WRONG = [
  undefined, null, 5, true, "", "x", {}, [], { key: 5 }, { key: null }, { key: "x" }, { key: "x", format: "der" }, { key: "x", format: "der", type: "pkcs8" },
  { key: "x", format: "der", type: "pkcs1" }, { key: "x", format: "der", type: "spki" }, { key: "x", format: "der", type: "sec1" }, { key: "x", format: "other" },
  { key: "x", type: "other" }, { key: "x", passphrase: 5 }, { key: "x", format: "jwk" }, { key: null, format: "jwk" }, { key: KEYS.rsa, encoding: "hex" },
  "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
  "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "-----BEGIN RSA PUBLIC KEY-----\nAAAA\n-----END RSA PUBLIC KEY-----", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----",
];
const JWKS = [
  {}, { kty: 5 }, { kty: "other" }, { kty: "RSA" }, { kty: "RSA", n: "AQAB" }, { kty: "EC" }, { kty: "EC", crv: "P-256" }, { kty: "EC", crv: "P-256", x: "AQ", y: "AQ" }, { kty: "EC", crv: "other", x: "AQ", y: "AQ" },
  { kty: "OKP" }, { kty: "OKP", crv: "Ed25519" }, { kty: "OKP", crv: "Ed25519", x: "AQ" }, { kty: "OKP", crv: "other", x: "AQ" }, { kty: "OKP", crv: "Ed25519", x: 5 }, { kty: "oct", k: "AQ" },
];
for (const [index, wrong] of [...WRONG, ...JWKS.map((key) => ({ key, format: "jwk" }))].entries()) {
  const data = Buffer.from("data");
  add(`createPrivateKey wrong ${index}`, () => crypto.createPrivateKey(wrong));
  add(`createPublicKey wrong ${index}`, () => crypto.createPublicKey(wrong));
  add(`createSecretKey wrong ${index}`, () => crypto.createSecretKey(wrong));
  add(`sign wrong ${index}`, () => crypto.sign("sha256", data, wrong));
  add(`verify wrong ${index}`, () => crypto.verify("sha256", data, wrong, data));
  add(`createSign wrong ${index}`, () => crypto.createSign("sha256").update(data).sign(wrong));
  add(`createVerify wrong ${index}`, () => crypto.createVerify("sha256").update(data).verify(wrong, data));
  add(`export wrong ${index}`, () => typeof rsa().export(wrong));
  add(`export public wrong ${index}`, () => typeof crypto.createPublicKey(KEYS.rsa).export(wrong));
  add(`export secret wrong ${index}`, () => crypto.createSecretKey("a").export(wrong));
  add(`equals wrong ${index}`, () => rsa().equals(wrong));
  add(`KeyObject wrong ${index}`, () => new crypto.KeyObject("secret", wrong));
  add(`KeyObject type ${index}`, () => new crypto.KeyObject(wrong));
  add(`KeyObject.from wrong ${index}`, () => crypto.KeyObject.from(wrong));
}
for (const make of [rsa, () => crypto.createPublicKey(KEYS.rsa), () => crypto.createSecretKey("abc")]) {
  for (const use of ["createPrivateKey", "createPublicKey", "createSecretKey"]) {
    add(`${use} of ${make}`, () => crypto[use](make()));
    add(`${use} of key ${make}`, () => crypto[use]({ key: make() }));
  }
  add(`tag ${make}`, () => Object.prototype.toString.call(make()));
  add(`createHmac ${make}`, () => crypto.createHmac("sha1", make()).update("x").digest("hex"));
  add(`createCipheriv ${make}`, () => crypto.createCipheriv("aes-128-cbc", make(), Buffer.alloc(16)));
}
for (const [value, encoding] of [["abc"], ["616263", "hex"], ["YWJj", "base64"], [new ArrayBuffer(4)], [new Uint16Array(3)], [""], [new DataView(new ArrayBuffer(5))]]) {
  for (const options of [undefined, {}, { format: "buffer" }, { format: "jwk" }, { format: "pem" }, null, 5]) add(`secret ${String(value)} ${encoding} ${JSON.stringify(options)}`, () => crypto.createSecretKey(value, encoding).export(options));
}
add("same secrets", () => `${crypto.createSecretKey("a").equals(crypto.createSecretKey("a"))} ${crypto.createSecretKey("a").equals(crypto.createSecretKey("b"))}`);
add("names of a private key", () => Object.getOwnPropertyNames(crypto.KeyObject.prototype).sort().join());

// Web Cryptography
const SECRETS = [{ name: "HMAC", hash: "SHA-256" }, "AES-CBC", "AES-GCM", "HKDF", "PBKDF2"];
for (const algorithm of SECRETS) {
  const usages = { HMAC: ["sign"], "AES-CBC": ["encrypt"], "AES-GCM": ["encrypt"], HKDF: ["deriveBits"], PBKDF2: ["deriveBits"] }[algorithm.name ?? algorithm];
  add(`toCryptoKey ${algorithm.name ?? algorithm}`, () => JSON.stringify(crypto.createSecretKey(Buffer.alloc(16, 1)).toCryptoKey(algorithm, false, usages).algorithm.name));
  add(`toCryptoKey and from ${algorithm.name ?? algorithm}`, () => crypto.KeyObject.from(crypto.createSecretKey(Buffer.alloc(16, 1)).toCryptoKey(algorithm, algorithm.name === "HMAC" || algorithm.startsWith?.("AES"), usages)).type);
}
for (const [name, algorithm] of [["rsa", { name: "RSA-PSS", hash: "SHA-256" }], ["ec256", { name: "ECDSA", namedCurve: "P-256" }], ["ed25519", "Ed25519"]]) {
  add(`toCryptoKey ${name}`, () => crypto.createPrivateKey(KEYS[name]).toCryptoKey(algorithm, true, ["sign"]).type);
  add(`toCryptoKey public ${name}`, () => crypto.createPublicKey(KEYS[name]).toCryptoKey(algorithm, true, ["verify"]).usages.join());
  add(`back ${name}`, () => crypto.KeyObject.from(crypto.createPrivateKey(KEYS[name]).toCryptoKey(algorithm, true, ["sign"])).equals(crypto.createPrivateKey(KEYS[name])));
}
