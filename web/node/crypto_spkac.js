// https://nodejs.org/api/crypto.html#class-certificate: SPKAC, the format of the HTML element <keygen>.
import { native } from "../internal/native.js";
import { Buffer } from "./buffer.js";
import { bytesOf } from "./crypto_key_options.js";

// Numbers of spkac in crypto_x509.cc.
const VERIFY = 0;
const KEY = 1;
const CHALLENGE = 2;

function verifySpkac(spkac, encoding = undefined) {
  const bytes = bytesOf(spkac, "spkac", encoding);
  // As in Node, an empty one gives empty text.
  return bytes.length === 0 ? "" : native.spkac(bytes, VERIFY) === true;
}

function exportPublicKey(spkac, encoding = undefined) {
  return bytesOrText(native.spkac(bytesOf(spkac, "spkac", encoding), KEY));
}

function exportChallenge(spkac, encoding = undefined) {
  return bytesOrText(native.spkac(bytesOf(spkac, "spkac", encoding), CHALLENGE));
}

// As in Node, an invalid one gives empty text.
const bytesOrText = (bytes) => (bytes === undefined ? "" : Buffer.from(bytes));

// A function and not a class: it is also called without `new`.
export function Certificate() {
  if (!(this instanceof Certificate)) return new Certificate();
}

for (const target of [Certificate, Certificate.prototype]) Object.assign(target, { verifySpkac, exportPublicKey, exportChallenge });
