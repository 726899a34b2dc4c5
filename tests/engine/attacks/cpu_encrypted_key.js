// Encrypted keys that ask for two thousand million rounds of PBKDF2, or as many lanes of scrypt. OpenSSL cannot be interrupted while it
// does them, so such a key is refused.
// expect: exception
import { Buffer } from "node:buffer";
import crypto from "node:crypto";

function der(tag, ...parts) {
  const content = Buffer.concat(parts);
  const length = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

const oid = (hex) => der(6, Buffer.from(hex, "hex"));
const number = (hex) => der(2, Buffer.from(hex, "hex"));
const salt = der(4, Buffer.alloc(8));
const rounds = der(0x30, oid("2a864886f70d01050c"), der(0x30, salt, number("7fffffff")));
const lanes = der(0x30, oid("2b06010401da47040b"), der(0x30, salt, number("02"), number("01"), number("7fffffff")));
const aes = der(0x30, oid("60864801650304012a"), der(4, Buffer.alloc(16)));
const old = der(0x30, oid("2a864886f70d010c0103"), der(0x30, salt, number("7fffffff")));
const modern = (kdf) => der(0x30, oid("2a864886f70d01050d"), der(0x30, kdf, aes));
const keys = [modern(rounds), modern(lanes), old].map((algorithm) => der(0x30, algorithm, der(4, Buffer.alloc(64))));

export default {
  fetch() {
    let refused = 0;
    for (const key of keys) {
      const pem = (label) => `-----BEGIN ${label}-----\n${key.toString("base64").replace(/.{64}/g, "$&\n")}\n-----END ${label}-----\n`;
      for (const given of [{ key, format: "der", type: "pkcs8" }, { key: pem("ENCRYPTED PRIVATE KEY") }, { key: pem("PRIVATE KEY") }]) {
        for (const read of [crypto.createPrivateKey, crypto.createPublicKey]) {
          try {
            read({ ...given, passphrase: "x" });
          } catch {
            refused++;
          }
        }
      }
    }
    if (refused === 18) throw new Error("all are refused at once");
    return new Response(`${refused} of 18`);
  },
};
