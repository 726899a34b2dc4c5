// JSON Web Keys of node:crypto. https://www.rfc-editor.org/rfc/rfc7518#section-6
import { native } from "../internal/native.js";
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument } from "./errors.js";

const RSA_MEMBERS = ["n", "e", "d", "p", "q", "dp", "dq", "qi"];
const CURVES = { __proto__: null, "P-256": ["prime256v1", 32], secp256k1: ["secp256k1", 32], "P-384": ["secp384r1", 48], "P-521": ["secp521r1", 66] };
// Numbers of importRaw in crypto_ec.cc, and bytes.
const RAW = { __proto__: null, Ed25519: [0, 32], X25519: [1, 32], Ed448: [2, 57], X448: [3, 56] };
// In the order of the numbers in crypto_pq.cc.
const POST_QUANTUM = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87", "ML-KEM-512", "ML-KEM-768", "ML-KEM-1024"];

const toText = (bytes) => Buffer.from(bytes).toString("base64url");
const invalid = (what) => codedError(TypeError, "ERR_CRYPTO_INVALID_JWK", what);

// Each returns a handle, or undefined if the key is not valid. `part` reads a member: undefined unless it is text.
const KINDS = {
  __proto__: null,
  RSA({ d }, part) {
    const parts = (d === undefined ? RSA_MEMBERS.slice(0, 2) : RSA_MEMBERS).map(part);
    return parts.includes(undefined) ? undefined : native.importRsa(...parts);
  },
  EC({ crv, d }, part) {
    const [curve, bytes] = CURVES[crv] ?? [];
    const [x, y, secret] = ["x", "y", "d"].map(part);
    if (typeof crv === "string" && curve === undefined) throw codedError(TypeError, "ERR_CRYPTO_INVALID_CURVE", "Invalid EC curve name");
    if (curve === undefined || x === undefined || y === undefined || x.length > bytes || y.length > bytes) return undefined;
    if (d !== undefined && secret === undefined) return undefined;
    const point = Buffer.alloc(1 + 2 * bytes);
    point[0] = 4;
    point.set(x, 1 + bytes - x.length);
    point.set(y, 1 + 2 * bytes - y.length);
    return native.ecKey(curve, point, secret);
  },
  OKP({ crv, d }, part) {
    const [number, bytes] = RAW[crv] ?? [];
    const [x, secret] = [part("x"), part("d")];
    const key = d === undefined ? x : secret;
    if (number === undefined || x === undefined || key?.length !== bytes) return undefined;
    return native.importRaw(number, key, d !== undefined);
  },
  AKP({ alg, priv }, part) {
    const number = POST_QUANTUM.indexOf(alg);
    const key = part(priv === undefined ? "pub" : "priv");
    if (number === -1 || part("pub") === undefined || key === undefined) return undefined;
    return native.importPq(number, key, priv !== undefined);
  },
};

/** `{ handle, type }` of a JSON Web Key. */
export function importJwk(jwk, wantsPrivate, name) {
  if (typeof jwk !== "object" || jwk === null) throw invalidArgument(name, "of type object", jwk);
  const { kty } = jwk;
  if (typeof kty !== "string") throw invalid("Invalid JWK format");
  if (!(kty in KINDS)) throw invalid(`${kty} is not a supported JWK key type`);
  const handle = KINDS[kty](jwk, (name) => (typeof jwk[name] === "string" ? Buffer.from(jwk[name], "base64url") : undefined));
  if (handle === undefined) throw invalid(`Invalid JWK ${kty} key`);
  const isPrivate = jwk[kty === "AKP" ? "priv" : "d"] !== undefined;
  if (wantsPrivate && !isPrivate) throw invalid("JWK does not contain private key material");
  return { handle, type: isPrivate ? "private" : "public" };
}

/** The JSON Web Key of an asymmetric key; `kind` is its asymmetricKeyType, `curve` the name of its curve. */
export function exportJwk(handle, kind, curve, isPrivate) {
  if (kind === "rsa") {
    const parts = native.rsaParts(handle, isPrivate);
    return { kty: "RSA", ...Object.fromEntries(parts.map((part, index) => [RSA_MEMBERS[index], toText(part)])) };
  }
  if (kind === "ec") {
    const [crv] = Object.entries(CURVES).find(([, [name]]) => name === curve) ?? [];
    if (crv === undefined) throw codedError(Error, "ERR_CRYPTO_JWK_UNSUPPORTED_CURVE", `Unsupported JWK EC curve: ${curve}.`);
    const [x, y, d] = native.ecParts(handle, isPrivate).map(toText);
    return isPrivate ? { kty: "EC", x, y, crv, d } : { kty: "EC", x, y, crv };
  }
  const crv = Object.keys(RAW).find((name) => name.toLowerCase() === kind);
  if (crv !== undefined) {
    const secret = isPrivate ? { d: toText(native.rawKey(handle, true)) } : {};
    return { crv, ...secret, x: toText(native.rawKey(handle, false)), kty: "OKP" };
  }
  const alg = POST_QUANTUM.find((name) => name.toLowerCase() === kind);
  if (alg === undefined) throw codedError(Error, "ERR_CRYPTO_JWK_UNSUPPORTED_KEY_TYPE", "Unsupported JWK Key Type.");
  const secret = isPrivate ? { priv: toText(native.pqPart(handle, true)) } : {};
  return { ...secret, kty: "AKP", alg, pub: toText(native.pqPart(handle, false)) };
}
