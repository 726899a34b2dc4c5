// `@noble/hashes`: Argon2 too, in JavaScript
import { gcm } from "@noble/ciphers/aes.js";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { argon2id as argonNoble } from "@noble/hashes/argon2.js";
import { blake3 } from "@noble/hashes/blake3.js";
import { scrypt } from "@noble/hashes/scrypt.js";
import { sha3_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import nacl from "tweetnacl";

export default () => {
  const seed = new Uint8Array(32).fill(7);
  const keys = nacl.sign.keyPair.fromSeed(seed);
  const sealed = nacl.secretbox(utf8ToBytes("text"), new Uint8Array(24), seed);
  const aes = gcm(seed, new Uint8Array(12));
  const signature = secp256k1.sign(utf8ToBytes("text"), seed);
  return [
    bytesToHex(sha3_256(utf8ToBytes("text"))),
    bytesToHex(blake3(utf8ToBytes("text"))),
    bytesToHex(scrypt("pass", "salt", { N: 1024, r: 8, p: 1, dkLen: 16 })),
    bytesToHex(argonNoble("pass", "saltsalt", { t: 1, m: 256, p: 1 })),
    bytesToHex(signature), secp256k1.verify(signature, utf8ToBytes("text"), secp256k1.getPublicKey(seed)),
    bytesToHex(aes.encrypt(utf8ToBytes("text"))),
    bytesToHex(nacl.sign.detached(utf8ToBytes("text"), keys.secretKey)),
    Buffer.from(nacl.secretbox.open(sealed, new Uint8Array(24), seed)).toString(),
    nacl.randomBytes(8).length,
  ];
};
