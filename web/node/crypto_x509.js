// https://nodejs.org/api/crypto.html#class-x509certificate
import { inspect } from "../internal/inspect.js";
import { native } from "../internal/native.js";
import { Buffer } from "./buffer.js";
import { requireResult } from "./crypto_faults.js";
import { hash } from "./crypto_hash.js";
import { keyState, makeKey } from "./crypto_keys.js";
import { codedError, invalidArgument, invalidValue, requireString } from "./errors.js";

// Numbers of kFields and of certificateMatches in crypto_x509.cc.
const FIELDS = [
  "subject", "issuer", "subjectAltName", "infoAccess", "validFrom", "validTo", "secondsFrom", "secondsTo", "keyUsage", "serialNumber",
  "signatureAlgorithm", "signatureAlgorithmOid", "ca",
];
const HOST = 0;
const EMAIL = 1;
const ADDRESS = 2;

// Flags of X509_check_host.
const ALWAYS_CHECK_SUBJECT = 0x1;
const NO_WILDCARDS = 0x2;
const NO_PARTIAL_WILDCARDS = 0x4;
const MULTI_LABEL_WILDCARDS = 0x8;
const SINGLE_LABEL_SUBDOMAINS = 0x10;
const NEVER_CHECK_SUBJECT = 0x20;

const NIST = { __proto__: null, prime192v1: "P-192", secp224r1: "P-224", prime256v1: "P-256", secp384r1: "P-384", secp521r1: "P-521" };

function requireBoolean(value, name) {
  if (typeof value !== "boolean") throw invalidArgument(name, "of type boolean", value);
}

function readFlags(options = {}) {
  if (typeof options !== "object" || options === null || Array.isArray(options)) throw invalidArgument("options", "of type object", options);
  const { subject = "default", wildcards = true, partialWildcards = true, multiLabelWildcards = false, singleLabelSubdomains = false } = options;
  requireString(subject, "options.subject");
  requireBoolean(wildcards, "options.wildcards");
  requireBoolean(partialWildcards, "options.partialWildcards");
  requireBoolean(multiLabelWildcards, "options.multiLabelWildcards");
  requireBoolean(singleLabelSubdomains, "options.singleLabelSubdomains");
  const whose = { __proto__: null, default: 0, always: ALWAYS_CHECK_SUBJECT, never: NEVER_CHECK_SUBJECT }[subject];
  if (whose === undefined) throw invalidValue("options.subject", subject);
  return (
    whose |
    (wildcards ? 0 : NO_WILDCARDS) |
    (partialWildcards ? 0 : NO_PARTIAL_WILDCARDS) |
    (multiLabelWildcards ? MULTI_LABEL_WILDCARDS : 0) |
    (singleLabelSubdomains ? SINGLE_LABEL_SUBDOMAINS : 0)
  );
}

function add(target, name, value) {
  if (!Object.hasOwn(target, name)) target[name] = value;
  else target[name] = Array.isArray(target[name]) ? [...target[name], value] : [target[name], value];
}

/** A value of a name without the escapes of RFC 2253. */
function unescaped(text) {
  if (!text.includes("\\")) return text;
  return text.replace(/\\([0-9A-F]{2})|\\(.)/g, (whole, hex, sign) => (hex === undefined ? sign : String.fromCharCode(parseInt(hex, 16))));
}

/** "C=US\nO=A" as `{ C: "US", O: "A" }`. */
function namesOf(text) {
  const found = { __proto__: null };
  for (const line of text.split("\n")) {
    const at = line.indexOf("=");
    if (at > 0) add(found, line.slice(0, at), unescaped(line.slice(at + 1)));
  }
  return found;
}

/** "OCSP - URI:http://x" as `{ "OCSP - URI": ["http://x"] }`. */
function accessOf(text) {
  const found = { __proto__: null };
  for (const [, key, value] of text.matchAll(/([^\n:]*):([^\n]*)(?:\n|$)/g)) {
    const shown = value.startsWith('"') ? JSON.parse(value) : value;
    (found[key] ??= []).push(shown);
  }
  return found;
}

export class X509Certificate {
  #handle;
  #found = new Map();

  constructor(buffer) {
    const bytes = typeof buffer === "string" ? Buffer.from(buffer) : buffer;
    if (!ArrayBuffer.isView(bytes)) throw invalidArgument("buffer", "of type string or an instance of Buffer, TypedArray, or DataView", buffer);
    this.#handle = requireResult(native.readCertificate(bytes), "Failed to parse X509 certificate");
  }

  #once(name, find) {
    if (!this.#found.has(name)) this.#found.set(name, find());
    return this.#found.get(name);
  }

  #field(name) {
    return this.#once(name, () => native.certificateField(this.#handle, FIELDS.indexOf(name)));
  }

  get subject() {
    return this.#field("subject");
  }

  get subjectAltName() {
    return this.#field("subjectAltName");
  }

  get issuer() {
    return this.#field("issuer");
  }

  // The certificates of a connection are not known here.
  get issuerCertificate() {
    return undefined;
  }

  get infoAccess() {
    return this.#field("infoAccess");
  }

  get validFrom() {
    return this.#field("validFrom");
  }

  get validTo() {
    return this.#field("validTo");
  }

  get validFromDate() {
    return this.#once("validFromDate", () => new Date(this.#field("secondsFrom") * 1000));
  }

  get validToDate() {
    return this.#once("validToDate", () => new Date(this.#field("secondsTo") * 1000));
  }

  #fingerprint(algorithm) {
    return this.#once(algorithm, () => hash(algorithm, this.raw).toUpperCase().replace(/..(?=.)/g, "$&:"));
  }

  get fingerprint() {
    return this.#fingerprint("sha1");
  }

  get fingerprint256() {
    return this.#fingerprint("sha256");
  }

  get fingerprint512() {
    return this.#fingerprint("sha512");
  }

  get keyUsage() {
    return this.#once("usages", () => this.#field("keyUsage")?.split(" "));
  }

  get serialNumber() {
    return this.#field("serialNumber");
  }

  get signatureAlgorithm() {
    return this.#field("signatureAlgorithm");
  }

  get signatureAlgorithmOid() {
    return this.#field("signatureAlgorithmOid");
  }

  get raw() {
    return this.#once("raw", () => Buffer.from(native.certificateBytes(this.#handle)));
  }

  get publicKey() {
    return this.#once("publicKey", () => makeKey({ type: "public", handle: requireResult(native.certificateKey(this.#handle), "Failed to read the public key") }));
  }

  get ca() {
    return this.#field("ca") !== undefined;
  }

  toString() {
    return this.#once("pem", () => `-----BEGIN CERTIFICATE-----\n${this.raw.toString("base64").replace(/.{64}(?=.)/g, "$&\n")}\n-----END CERTIFICATE-----\n`);
  }

  toJSON() {
    return this.toString();
  }

  #matches(what, text, flags) {
    const found = native.certificateMatches(this.#handle, what, text, flags);
    if (found === undefined) throw codedError(TypeError, "ERR_INVALID_ARG_VALUE", "Invalid name");
    return found === false ? undefined : found;
  }

  checkHost(name, options = undefined) {
    requireString(name, "name");
    return this.#matches(HOST, name, readFlags(options));
  }

  checkEmail(email, options = undefined) {
    requireString(email, "email");
    return this.#matches(EMAIL, email, readFlags(options));
  }

  checkIP(ip, options = undefined) {
    requireString(ip, "ip");
    return this.#matches(ADDRESS, ip, readFlags(options));
  }

  checkIssued(otherCert) {
    if (typeof otherCert !== "object" || otherCert === null || !(#handle in otherCert)) throw invalidArgument("otherCert", "an instance of X509Certificate", otherCert);
    return native.isIssuedBy(this.#handle, otherCert.#handle);
  }

  checkPrivateKey(pkey) {
    return native.isCertified(this.#handle, requireKey(pkey, "private"), false);
  }

  verify(pkey) {
    return native.isCertified(this.#handle, requireKey(pkey, "public"), true);
  }

  /** The form of tls.TLSSocket.getPeerCertificate(). */
  toLegacyObject() {
    const { asn1Curve, nistCurve, ...key } = this.#legacyKey();
    return {
      subject: namesOf(this.subject ?? ""),
      issuer: namesOf(this.issuer ?? ""),
      subjectaltname: this.subjectAltName,
      infoAccess: this.infoAccess === undefined ? undefined : accessOf(this.infoAccess),
      ca: this.ca,
      ...key,
      valid_from: this.validFrom,
      valid_to: this.validTo,
      fingerprint: this.fingerprint,
      fingerprint256: this.fingerprint256,
      fingerprint512: this.fingerprint512,
      ext_key_usage: this.keyUsage,
      serialNumber: this.serialNumber,
      raw: this.raw,
      asn1Curve,
      nistCurve,
    };
  }

  #legacyKey() {
    const found = { modulus: undefined, exponent: undefined, pubkey: undefined, bits: undefined, asn1Curve: undefined, nistCurve: undefined };
    const { handle } = keyState(this.publicKey);
    const { asymmetricKeyType: kind, asymmetricKeyDetails: details } = this.publicKey;
    if (kind === "rsa") {
      found.modulus = Buffer.from(native.rsaParts(handle, false)[0]).toString("hex").toUpperCase();
      found.bits = details.modulusLength;
      found.exponent = `0x${details.publicExponent.toString(16)}`;
      found.pubkey = this.publicKey.export({ type: "spki", format: "der" });
    } else if (kind === "ec") {
      const [x, y] = native.ecParts(handle, false);
      found.bits = details.namedCurve === "secp521r1" ? 521 : x.byteLength * 8;
      found.pubkey = Buffer.concat([Buffer.from([4]), Buffer.from(x), Buffer.from(y)]);
      found.asn1Curve = details.namedCurve;
      found.nistCurve = NIST[details.namedCurve];
    }
    return found;
  }

  [Symbol.for("nodejs.util.inspect.custom")](depth, options) {
    if (depth < 0) return this;
    const names = ["subject", "subjectAltName", "issuer", "infoAccess", "validFrom", "validTo", "validFromDate", "validToDate", "fingerprint", "fingerprint256", "fingerprint512", "keyUsage", "serialNumber", "signatureAlgorithm", "signatureAlgorithmOid"];
    return `X509Certificate ${inspect(Object.fromEntries(names.map((name) => [name, this[name]])), options)}`;
  }
}

function requireKey(key, type) {
  const state = keyState(key);
  if (state === undefined) throw invalidArgument("pkey", "an instance of KeyObject", key);
  if (state.type !== type) throw invalidValue("pkey", key);
  return state.handle;
}
