// Keys with a modulus of 60,000 bits, whose use takes minutes: they are refused.
// expect: exception
import { Buffer } from "node:buffer";
import crypto from "node:crypto";

function der(tag, ...parts) {
  const content = Buffer.concat(parts);
  const length = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

const huge = Buffer.alloc(7500, 0x55);
const integer = (bytes) => der(2, bytes);
const rsa = der(0x30, integer(huge), integer(huge));
const dsaId = Buffer.from("06072a8648ce380401", "hex");
const dsa = der(0x30, der(0x30, dsaId, der(0x30, integer(huge), integer(huge), integer(Buffer.from([2])))), der(3, Buffer.from([0]), integer(huge)));
const dhId = Buffer.from("06092a864886f70d010301", "hex");
const dh = der(0x30, der(0x30, dhId, der(0x30, integer(huge), integer(Buffer.from([2])))), der(3, Buffer.from([0]), integer(huge)));

export default {
  fetch() {
    let refused = 0;
    const text = huge.toString("base64url");
    for (const key of [
      { key: rsa, format: "der", type: "pkcs1" }, { key: dsa, format: "der", type: "spki" }, { key: dh, format: "der", type: "spki" }, { key: { kty: "RSA", n: text, e: text }, format: "jwk" },
    ]) {
      try {
        crypto.verify("sha256", Buffer.alloc(1), crypto.createPublicKey(key), huge);
      } catch {
        refused++;
      }
    }
    if (refused === 4) throw new Error("all are refused at once");
    return new Response(`${refused} of 4`);
  },
};
