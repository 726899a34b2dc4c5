// https://w3c.github.io/webcrypto/#ed25519 and #x25519
import { native } from "../internal/native.js";
import { toDOMString } from "../internal/webidl.js";
import { agree, AGREEMENT_PARAMS } from "./agreement.js";
import { ED25519, ED448, exportDer, halfKey, importDer, keyPair, requirePrivateUsage, requireType, X25519, X448 } from "./asymmetric.js";
import { dataError, notSupported, operationError, resultOf } from "./errors.js";
import { viewOf } from "./idl.js";
import { checkJsonWebKey, decodeMember, encodeMember } from "./jwk.js";
import { bufferSource, defineAlgorithm, optional, required } from "./registry.js";
import { checkUsages } from "./symmetric.js";

/** https://w3c.github.io/webcrypto/#ed25519-operations-sign */
function sign(algorithm, key, data) {
  requireType(key, "private");
  return resultOf(native.signEd25519(key.handle, data), "The signature failed.");
}

/** https://w3c.github.io/webcrypto/#ed25519-operations-verify */
function verify(algorithm, key, signature, data) {
  requireType(key, "public");
  return resultOf(native.verifyEd25519(key.handle, signature, data), "The signature could not be verified.");
}

function toNodeCurve(value) {
  const name = toDOMString(value);
  if (name === "NODE-ED25519") return name;
  throw notSupported(`EdDSA curve "${name}" isn't supported.`);
}

/** https://wicg.github.io/webcrypto-secure-curves/#ed448-operations */
const ED448_PARAMS = [optional("context", ...bufferSource)];
const NO_CONTEXT = new Uint8Array(0);

function checkContext(context) {
  if (context.length > 255) throw operationError("A context has at most 255 bytes.");
}

function sign448({ context = NO_CONTEXT }, key, data) {
  requireType(key, "private");
  checkContext(context);
  return resultOf(native.signPq(key.handle, data, context), "The signature failed.");
}

function verify448({ context = NO_CONTEXT }, key, signature, data) {
  requireType(key, "public");
  checkContext(context);
  return resultOf(native.verifyPq(key.handle, signature, data, context), "The signature could not be verified.");
}

// `kind` is the number for DER, `number` the one for raw keys (TypeOfRaw in crypto_ec.cc).
function keyOperations({ kind, number, use, publicUsages, privateUsages, algs, curve = undefined, members = [] }) {
  // The name of the curve in a JSON Web Key, and the algorithm of a key.
  const curveOf = (name) => curve ?? name;
  const describe = (name) => (curve === undefined ? { name } : { name, namedCurve: name });

  function generateKey({ name }, extractable, usages) {
    checkUsages(usages, [...publicUsages, ...privateUsages]);
    requirePrivateUsage(usages, privateUsages);
    const handle = native.generateRaw(number);
    if (handle === undefined) throw operationError("The key could not be generated.");
    return keyPair(describe(name), handle, extractable, usages, publicUsages, privateUsages);
  }

  function importRaw(bytes, isPrivate) {
    const handle = native.importRaw(number, bytes, isPrivate);
    if (handle === undefined) throw dataError("The key does not have the length that this algorithm requires.");
    return handle;
  }

  function importJwk(keyData, name, extractable, usages) {
    const isPrivate = keyData.d !== undefined;
    checkUsages(usages, isPrivate ? privateUsages : publicUsages);
    checkJsonWebKey(keyData, "OKP", use, extractable, usages);
    if (keyData.crv !== curveOf(name)) throw dataError(`The JSON Web Key is on ${keyData.crv}, not on ${curveOf(name)}.`);
    if (algs !== undefined && keyData.alg !== undefined && !algs.includes(keyData.alg)) {
      throw dataError(`The JSON Web Key is for ${keyData.alg}, not for ${algs[0]}.`);
    }
    const x = decodeMember(keyData, "x");
    if (!isPrivate) return halfKey("public", describe(name), importRaw(x, false));
    const handle = importRaw(decodeMember(keyData, "d"), true);
    const own = new Uint8Array(native.rawKey(handle, false));
    if (x.length !== own.length || !native.equalBytes(x, own)) {
      throw dataError("The public part of the JSON Web Key does not belong to its private part.");
    }
    return halfKey("private", describe(name), handle);
  }

  /** https://w3c.github.io/webcrypto/#ed25519-operations-import-key */
  function importKey(format, keyData, { name }, extractable, usages) {
    if (format === "jwk") return importJwk(keyData, name, extractable, usages);
    if (format === "spki" || format === "pkcs8") {
      const isPrivate = format === "pkcs8";
      checkUsages(usages, isPrivate ? privateUsages : publicUsages);
      return halfKey(isPrivate ? "private" : "public", describe(name), importDer(kind, format, keyData));
    }
    if (format !== "raw") throw notSupported(`A key of ${name} cannot be imported from "${format}".`);
    checkUsages(usages, publicUsages);
    return halfKey("public", describe(name), importRaw(viewOf(keyData), false));
  }

  /** https://w3c.github.io/webcrypto/#ed25519-operations-export-key */
  function exportKey(format, key) {
    if (format === "spki" || format === "pkcs8") return exportDer(key, format);
    if (format === "raw") {
      requireType(key, "public");
      return native.rawKey(key.handle, false);
    }
    if (format !== "jwk") throw notSupported(`A key of ${key.algorithm.name} cannot be exported as "${format}".`);
    const jwk = { kty: "OKP", crv: curveOf(key.algorithm.name), x: encodeMember(native.rawKey(key.handle, false)) };
    if (key.type === "private") jwk.d = encodeMember(native.rawKey(key.handle, true));
    jwk.key_ops = [...key.usages];
    jwk.ext = key.extractable;
    // https://w3c.github.io/webcrypto/#ed25519-operations-export-key sets `alg`; the export of X25519 does not.
    if (algs !== undefined) jwk.alg = algs[0];
    return jwk;
  }

  return {
    generateKey: [members, generateKey],
    importKey: [members, importKey],
    exportKey: [[], exportKey],
    "get public key": [[], () => publicUsages],
  };
}

defineAlgorithm("Ed25519", {
  sign: [[], sign],
  verify: [[], verify],
  ...keyOperations({
    kind: ED25519,
    number: 0,
    use: "sig",
    publicUsages: ["verify"],
    privateUsages: ["sign"],
    algs: ["Ed25519", "EdDSA"],
  }),
});
// https://developers.cloudflare.com/workers/runtime-apis/web-crypto/#footnotes: Ed25519 before it had a standard name.
defineAlgorithm("NODE-ED25519", {
  sign: [[], sign],
  verify: [[], verify],
  ...keyOperations({
    kind: ED25519,
    number: 0,
    use: "sig",
    publicUsages: ["verify"],
    privateUsages: ["sign"],
    algs: ["EdDSA", "Ed25519"],
    curve: "Ed25519",
    members: [required("namedCurve", toNodeCurve)],
  }),
});
defineAlgorithm("X25519", {
  deriveBits: [AGREEMENT_PARAMS, ({ public: peer }, key, length) => agree(key, peer, length)],
  ...keyOperations({
    kind: X25519,
    number: 1,
    use: "enc",
    publicUsages: [],
    privateUsages: ["deriveKey", "deriveBits"],
    algs: undefined,
  }),
});
defineAlgorithm("Ed448", {
  sign: [ED448_PARAMS, sign448],
  verify: [ED448_PARAMS, verify448],
  ...keyOperations({
    kind: ED448,
    number: 2,
    use: "sig",
    publicUsages: ["verify"],
    privateUsages: ["sign"],
    algs: ["Ed448", "EdDSA"],
  }),
});
defineAlgorithm("X448", {
  deriveBits: [AGREEMENT_PARAMS, ({ public: peer }, key, length) => agree(key, peer, length)],
  ...keyOperations({
    kind: X448,
    number: 3,
    use: "enc",
    publicUsages: [],
    privateUsages: ["deriveKey", "deriveBits"],
    algs: undefined,
  }),
});
