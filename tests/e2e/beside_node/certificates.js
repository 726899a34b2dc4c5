// node:crypto: X509Certificate and Certificate (SPKAC).
import { Buffer } from "node:buffer";
import crypto from "node:crypto";
import { inspect } from "node:util";
import { CERTIFICATES, KEYS, SPKAC } from "./key_texts.js";

export const cases = {};

const add = (name, run) => {
  cases[name] = () => {
    try {
      const result = run();
      if (Buffer.isBuffer(result)) return result.toString("hex");
      if (result instanceof crypto.KeyObject) return result.export({ type: "spki", format: "pem" });
      return result instanceof Date ? result.toISOString() : result;
    } catch (error) {
      return `${error.name} ${error.code} ${error.message}`;
    }
  };
};

const FIELDS = [
  "subject", "subjectAltName", "issuer", "infoAccess", "validFrom", "validTo", "validFromDate", "validToDate", "fingerprint", "fingerprint256", "fingerprint512", "keyUsage", "serialNumber",
  "signatureAlgorithm", "signatureAlgorithmOid", "raw", "publicKey", "ca", "issuerCertificate", "toString", "toJSON",
];
const HOSTS = [
  "www.example.com", "WWW.EXAMPLE.COM", "www.example.com.", "a.wild.example.com", "a.b.wild.example.com", "wild.example.com", ".wild.example.com", "example.com", "a,b.example.com", "plain.example", "Test CA", "", "a\0b", "127.0.0.1", "é.example",
];
const EMAILS = ["other@example.com", "OTHER@example.com", "other@EXAMPLE.com", "me@example.com", "ca@example.com", "", "a\0b", "x"];
const ADDRESSES = ["127.0.0.1", "127.0.0.2", "2001:db8::1", "2001:DB8:0:0:0:0:0:1", "::", "", "x", "[::1]", "1.2.3"];
const OPTIONS = [
  undefined, {}, null, 5, [], { subject: "always" }, { subject: "never" }, { subject: "default" }, { subject: "other" }, { subject: 5 }, { wildcards: false }, { wildcards: 5 }, { partialWildcards: false }, { partialWildcards: "" },
  { multiLabelWildcards: true }, { multiLabelWildcards: {} }, { singleLabelSubdomains: true }, { singleLabelSubdomains: 1 }, { subject: "always", wildcards: false },
];
const WRONG = [undefined, null, 5, {}, [], "text", true];

for (const [name, pem] of Object.entries(CERTIFICATES)) {
  const certificate = () => new crypto.X509Certificate(pem);
  for (const field of FIELDS) add(`${name} ${field}`, () => (typeof certificate()[field] === "function" ? certificate()[field]() : certificate()[field]));
  add(`${name} of DER`, () => new crypto.X509Certificate(certificate().raw).subject);
  add(`${name} of a Buffer`, () => new crypto.X509Certificate(Buffer.from(pem)).serialNumber);
  add(`${name} inspected`, () => inspect(certificate()));
  add(`${name} as JSON`, () => JSON.stringify(certificate()));
  add(`${name} legacy`, () => JSON.stringify(certificate().toLegacyObject()));
  add(`${name} legacy keys`, () => Object.keys(certificate().toLegacyObject()).sort().join());
  add(`${name} public key of PEM`, () => crypto.createPublicKey(pem));
  for (const options of OPTIONS) {
    for (const host of HOSTS) add(`${name} checkHost ${host} ${JSON.stringify(options)}`, () => certificate().checkHost(host, options));
    for (const email of EMAILS) add(`${name} checkEmail ${email} ${JSON.stringify(options)}`, () => certificate().checkEmail(email, options));
    for (const address of ADDRESSES) add(`${name} checkIP ${address} ${JSON.stringify(options)}`, () => certificate().checkIP(address, options));
  }
  for (const [other, text] of Object.entries(CERTIFICATES)) {
    add(`${name} checkIssued ${other}`, () => certificate().checkIssued(new crypto.X509Certificate(text)));
    add(`${name} verify ${other}`, () => certificate().verify(new crypto.X509Certificate(text).publicKey));
  }
  for (const key of ["rsa", "ec256", "ed25519", "dsa", "ec384"]) {
    add(`${name} checkPrivateKey ${key}`, () => certificate().checkPrivateKey(crypto.createPrivateKey(KEYS[key])));
    add(`${name} verify key ${key}`, () => certificate().verify(crypto.createPublicKey(KEYS[key])));
  }
  for (const [index, wrong] of WRONG.entries()) {
    // Node reads a property of null.
    if (wrong !== undefined && wrong !== null) add(`${name} checkIssued wrong ${index}`, () => certificate().checkIssued(wrong));
    add(`${name} checkPrivateKey wrong ${index}`, () => certificate().checkPrivateKey(wrong));
    add(`${name} verify wrong ${index}`, () => certificate().verify(wrong));
    if (typeof wrong === "string") continue;
    add(`${name} checkHost wrong ${index}`, () => certificate().checkHost(wrong));
    add(`${name} checkEmail wrong ${index}`, () => certificate().checkEmail(wrong));
    add(`${name} checkIP wrong ${index}`, () => certificate().checkIP(wrong));
  }
  add(`${name} cut`, () => new crypto.X509Certificate(pem.slice(0, 300)));
  add(`${name} cut DER`, () => new crypto.X509Certificate(certificate().raw.subarray(0, 300)));
  add(`${name} checkPrivateKey public`, () => {
    try {
      return certificate().checkPrivateKey(certificate().publicKey);
    } catch (error) {
      return error.code;
    }
  });
}
for (const [index, wrong] of [...WRONG, "", Buffer.alloc(0), Buffer.alloc(9), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", KEYS.rsa].entries()) add(`new X509Certificate ${index}`, () => new crypto.X509Certificate(wrong));

const other = `A${SPKAC.slice(1)}`;
for (const make of [() => crypto.Certificate, () => new crypto.Certificate(), () => crypto.Certificate()]) {
  for (const method of ["verifySpkac", "exportPublicKey", "exportChallenge"]) {
    for (const [index, spkac] of [SPKAC, Buffer.from(SPKAC), Uint8Array.from(Buffer.from(SPKAC)), other, "", "x", Buffer.alloc(0), undefined, null, 5, {}, []].entries()) add(`${make} ${method} ${index}`, () => make()[method](spkac));
    add(`${make} ${method} hex`, () => make()[method](Buffer.from(SPKAC).toString("hex"), "hex"));
  }
}
add("Certificate is its own class", () => crypto.Certificate() instanceof crypto.Certificate);
