// https://w3c.github.io/webcrypto/#ecdsa and #ecdh, on the curves of NIST
import { native } from "../internal/native.js";
import { toDOMString } from "../internal/webidl.js";
import { agree, AGREEMENT_PARAMS } from "./agreement.js";
import { EC, exportDer, halfKey, importDer, keyPair, requirePrivateUsage, requireType } from "./asymmetric.js";
import { accessError, dataError, notSupported, operationError, resultOf } from "./errors.js";
import { viewOf } from "./idl.js";
import { checkJsonWebKey, decodeMember, encodeMember } from "./jwk.js";
import { defineAlgorithm, hashIdentifier, hashNumber, required } from "./registry.js";
import { checkUsages } from "./symmetric.js";

// The numbers are those of CurveOf in crypto.cc.
const CURVES = {
  __proto__: null,
  "P-256": { number: 0, bytes: 32, alg: "ES256" },
  "P-384": { number: 1, bytes: 48, alg: "ES384" },
  "P-521": { number: 2, bytes: 66, alg: "ES512" },
};
const curveOf = (key) => CURVES[key.algorithm.namedCurve];

// --- ECDSA ---

/** https://w3c.github.io/webcrypto/#ecdsa-operations-sign */
function sign({ hash }, key, data) {
  requireType(key, "private");
  return resultOf(native.signEcdsa(key.handle, curveOf(key).number, hashNumber(hash), data), "The signature failed.");
}

/** https://w3c.github.io/webcrypto/#ecdsa-operations-verify */
function verify({ hash }, key, signature, data) {
  requireType(key, "public");
  const result = native.verifyEcdsa(key.handle, curveOf(key).number, hashNumber(hash), signature, data);
  return resultOf(result, "The signature could not be verified.");
}

// --- ECDH ---

/** https://w3c.github.io/webcrypto/#ecdh-operations-derive-bits */
function deriveBits({ public: peer }, key, length) {
  if (peer.algorithm.namedCurve !== key.algorithm.namedCurve) throw accessError("The keys are on different curves.");
  return agree(key, peer, length);
}

// --- Keys, the same for both ---

function findCurve(namedCurve, makeError) {
  const curve = CURVES[namedCurve];
  if (curve === undefined) throw makeError(`Unrecognized or unimplemented EC curve "${namedCurve}" requested.`);
  return curve;
}

function keyOperations({ use, publicUsages, privateUsages, hasJwkAlgorithm }) {
  /** https://w3c.github.io/webcrypto/#ecdsa-operations-generate-key */
  function generateKey({ name, namedCurve }, extractable, usages) {
    checkUsages(usages, [...publicUsages, ...privateUsages]);
    const curve = findCurve(namedCurve, notSupported);
    requirePrivateUsage(usages, privateUsages);
    const handle = native.generateEc(curve.number);
    if (handle === undefined) throw operationError("The key could not be generated.");
    return keyPair({ name, namedCurve }, handle, extractable, usages, publicUsages, privateUsages);
  }

  function importJwk(keyData, namedCurve, extractable, usages) {
    const isPrivate = keyData.d !== undefined;
    checkUsages(usages, isPrivate ? privateUsages : publicUsages);
    checkJsonWebKey(keyData, "EC", use, extractable, usages);
    const curve = findCurve(namedCurve, dataError);
    if (keyData.crv !== namedCurve) throw dataError(`The JSON Web Key is on ${keyData.crv}, not on ${namedCurve}.`);
    if (hasJwkAlgorithm && keyData.alg !== undefined && keyData.alg !== curve.alg) {
      throw dataError(`The JSON Web Key is for ${keyData.alg}, not for ${curve.alg}.`);
    }
    const x = decodeMember(keyData, "x");
    const y = decodeMember(keyData, "y");
    const d = isPrivate ? decodeMember(keyData, "d") : undefined;
    // https://www.rfc-editor.org/rfc/rfc7518#section-6.2: all numbers have the full length.
    if (x.length !== curve.bytes || y.length !== curve.bytes || (isPrivate && d.length !== curve.bytes)) {
      throw dataError("A number in the JSON Web Key does not have the length that the curve requires.");
    }
    const point = new Uint8Array(1 + 2 * curve.bytes);
    point[0] = 4;
    point.set(x, 1);
    point.set(y, 1 + curve.bytes);
    const handle = native.importEc(curve.number, point, d);
    if (handle === undefined) throw dataError("The numbers of the JSON Web Key are not a key on this curve.");
    return halfKey(isPrivate ? "private" : "public", undefined, handle);
  }

  function importRaw(keyData, namedCurve, usages) {
    const curve = findCurve(namedCurve, dataError);
    checkUsages(usages, publicUsages);
    const handle = native.importEc(curve.number, viewOf(keyData), undefined);
    if (handle === undefined) throw dataError("The data is not a point of this curve.");
    return halfKey("public", undefined, handle);
  }

  /** https://w3c.github.io/webcrypto/#ecdsa-operations-import-key */
  function importKey(format, keyData, { name, namedCurve }, extractable, usages) {
    let key;
    if (format === "spki" || format === "pkcs8") {
      const isPrivate = format === "pkcs8";
      checkUsages(usages, isPrivate ? privateUsages : publicUsages);
      const curve = findCurve(namedCurve, dataError);
      key = halfKey(isPrivate ? "private" : "public", undefined, importDer(EC, format, keyData, curve.number));
    } else if (format === "jwk") {
      key = importJwk(keyData, namedCurve, extractable, usages);
    } else if (format === "raw") {
      key = importRaw(keyData, namedCurve, usages);
    } else {
      throw notSupported(`An EC key cannot be imported from "${format}".`);
    }
    key.algorithm = { name, namedCurve };
    return key;
  }

  /** https://w3c.github.io/webcrypto/#ecdsa-operations-export-key */
  function exportKey(format, key) {
    if (format === "spki" || format === "pkcs8") return exportDer(key, format);
    if (format === "raw") requireType(key, "public");
    else if (format !== "jwk") throw notSupported(`An EC key cannot be exported as "${format}".`);
    const point = native.ecPoint(key.handle);
    if (point === undefined) throw operationError("The key could not be exported.");
    if (format === "raw") return point;
    const { bytes, number } = curveOf(key);
    const jwk = {
      kty: "EC",
      crv: key.algorithm.namedCurve,
      x: encodeMember(point.slice(1, 1 + bytes)),
      y: encodeMember(point.slice(1 + bytes)),
    };
    if (key.type === "private") jwk.d = encodeMember(native.ecSecret(key.handle, number));
    jwk.key_ops = [...key.usages];
    jwk.ext = key.extractable;
    return jwk;
  }

  const params = [required("namedCurve", toDOMString)];
  return {
    generateKey: [params, generateKey],
    importKey: [params, importKey],
    exportKey: [[], exportKey],
    "get public key": [[], () => publicUsages],
  };
}

const ECDSA_PARAMS = [required("hash", ...hashIdentifier)];

defineAlgorithm("ECDSA", {
  sign: [ECDSA_PARAMS, sign],
  verify: [ECDSA_PARAMS, verify],
  ...keyOperations({ use: "sig", publicUsages: ["verify"], privateUsages: ["sign"], hasJwkAlgorithm: true }),
});
defineAlgorithm("ECDH", {
  deriveBits: [AGREEMENT_PARAMS, deriveBits],
  ...keyOperations({ use: "enc", publicUsages: [], privateUsages: ["deriveKey", "deriveBits"], hasJwkAlgorithm: false }),
});
