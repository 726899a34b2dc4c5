// https://nodejs.org/api/crypto.html#keyobjecttocryptokeyalgorithm-extractable-keyusages
import { syntaxError } from "../crypto/errors.js";
import { createKey, intersectUsages, USAGES } from "../crypto/key.js";
import { normalizeAlgorithm } from "../crypto/registry.js";
import { keyState, writeKey } from "./crypto_keys.js";

const FORMATS = {
  secret: ({ secret }) => ["raw", secret],
  public: (state) => ["spki", writeKey(state, { format: "der", type: "spki" })],
  private: (state) => ["pkcs8", writeKey(state, { format: "der", type: "pkcs8" })],
};

export function toCryptoKey(key, algorithm, extractable, keyUsages) {
  const state = keyState(key);
  const usages = intersectUsages(USAGES, [...(keyUsages ?? [])]);
  const normalized = normalizeAlgorithm(algorithm, "importKey");
  const [format, data] = FORMATS[state.type](state);
  const found = normalized.run(format, data, normalized, !!extractable, usages);
  if (found.type !== "public" && usages.length === 0) throw syntaxError(`Usages cannot be empty when importing a ${found.type} key.`);
  return createKey({ ...found, extractable: !!extractable, usages });
}
