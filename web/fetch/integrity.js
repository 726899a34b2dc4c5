// https://w3c.github.io/webappsec-subresource-integrity/: a response is accepted only if it has the expected digest.
import { hashNumber } from "../crypto/registry.js";
import { native } from "../internal/native.js";
import { Body, bodyBytes } from "./body.js";
import { responseState } from "./response.js";

const STRENGTH = { sha256: "SHA-256", sha384: "SHA-384", sha512: "SHA-512" }; // from the weakest to the strongest

/** https://w3c.github.io/webappsec-subresource-integrity/#parse-metadata: the strongest entries; [] if there are none. */
function strongestMetadata(integrity) {
  const found = [];
  for (const item of integrity.split(/[\t\n\f\r ]+/)) {
    const [, algorithm, value] = /^(sha256|sha384|sha512)-([A-Za-z0-9+/_-]*={0,2})(?:\?.*)?$/i.exec(item) ?? [];
    if (algorithm !== undefined) found.push({ algorithm: algorithm.toLowerCase(), value });
  }
  const names = Object.keys(STRENGTH);
  const strongest = Math.max(...found.map(({ algorithm }) => names.indexOf(algorithm)));
  return found.filter(({ algorithm }) => names.indexOf(algorithm) === strongest);
}

/** True if two base64 texts, in either alphabet and with or without padding, encode the same bytes. */
function isSameBase64(one, other) {
  const plain = (text) => text.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "");
  return plain(one) === plain(other);
}

/** https://w3c.github.io/webappsec-subresource-integrity/#does-response-match-metadatalist. `answer`: promise of a Response. */
export async function verified(answer, integrity) {
  const response = await answer;
  const wanted = strongestMetadata(integrity);
  if (wanted.length === 0) return response;
  const state = responseState(response);
  const bytes = await bodyBytes(state.body);
  const digest = new Uint8Array(await native.digest(hashNumber({ name: STRENGTH[wanted[0].algorithm] }), bytes));
  const actual = native.btoa(String.fromCharCode(...digest));
  const isRight = wanted.some(({ value }) => isSameBase64(value, actual));
  if (!isRight) throw new TypeError(`fetch: the response does not have the expected integrity; its digest is ${wanted[0].algorithm}-${actual}.`);
  if (state.body !== null) state.body = new Body(bytes);
  return response;
}
