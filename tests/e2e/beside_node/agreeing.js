// node:crypto: ECDH on every curve, Diffie-Hellman, primes, encryption with RSA. Keys are given, so that results can be compared.
import { Buffer } from "node:buffer";
import crypto from "node:crypto";

// Node passes the errors of OpenSSL on, Atoll does not.
const OF_OPENSSL = /^ERR_(OSSL_|CRYPTO_OPERATION_FAILED|CRYPTO_INVALID_DIGEST)/;

export const cases = {};
const add = (name, run) => {
  cases[name] = () => {
    try {
      const result = run();
      return Buffer.isBuffer(result) ? result.toString("hex") : result;
    } catch (error) {
      return OF_OPENSSL.test(error.code) ? "fails" : `${error.name} ${error.code}`;
    }
  };
};
const hex = (text) => Buffer.from(text, "hex");

const SECRETS = ["01", "0203", "c51e4753afdec1e6b6c6a5b992f43f8d", "00".repeat(10), "ff".repeat(80)];
for (const curve of crypto.getCurves()) {
  const holder = (secret) => {
    const ecdh = crypto.createECDH(curve);
    ecdh.setPrivateKey(hex(secret));
    return ecdh;
  };
  for (const secret of SECRETS) for (const format of [undefined, "compressed", "hybrid"]) add(`${curve} public ${secret.slice(0, 8)} ${format}`, () => holder(secret).getPublicKey("hex", format));
  add(`${curve} secret`, () => holder("c51e4753").computeSecret(holder("0203").getPublicKey(), null, "hex"));
  add(`${curve} the same secret`, () => holder("0203").computeSecret(holder("c51e4753").getPublicKey("base64", "compressed"), "base64", "hex"));
  add(`${curve} convert`, () => crypto.ECDH.convertKey(holder("0203").getPublicKey(), curve, null, "hex", "compressed"));
  add(`${curve} not a point`, () => holder("0203").computeSecret(Buffer.alloc(20, 4)));
  add(`${curve} empty point`, () => holder("0203").computeSecret(Buffer.alloc(0)));
}
for (const curve of ["p-256", "secp256k2", "", 5, null, undefined]) add(`createECDH ${String(curve)}`, () => crypto.createECDH(curve));
for (const format of ["other", 5, {}]) add(`format ${String(format)}`, () => crypto.createECDH("prime256v1").generateKeys("hex", format));
for (const key of [5, null, undefined, {}]) add(`computeSecret ${String(key)}`, () => crypto.createECDH("prime256v1").computeSecret(key));
add("no keys", () => crypto.createECDH("prime256v1").getPublicKey());
add("no private key", () => crypto.createECDH("prime256v1").getPrivateKey());

for (const name of ["modp1", "modp2", "modp5", "modp14", "MODP14", "modp15", "modp16", "modp3", "", 5]) {
  add(`group ${name} prime`, () => crypto.getDiffieHellman(name).getPrime("hex"));
  add(`group ${name} generator`, () => crypto.createDiffieHellmanGroup(name).getGenerator("hex"));
  add(`group ${name} has no setters`, () => `${crypto.getDiffieHellman(name).setPrivateKey} ${crypto.getDiffieHellman(name).verifyError}`);
}
for (const name of [...crypto.getHashes(), "SHA256", "sha-256", "SHA512-256"]) {
  for (const outputLength of [undefined, 0, 5, 32, 200]) {
    add(`hash ${name} ${outputLength}`, () => crypto.createHash(name, { outputLength }).update("some text").digest("hex"));
    add(`hash ${name} ${outputLength} copied`, () => crypto.createHash(name).update("some text").copy({ outputLength }).digest("base64"));
  }
}
for (const outputLength of [-1, 1.5, "5", null, {}]) add(`output length ${String(outputLength)}`, () => crypto.createHash("shake128", { outputLength }).digest("hex"));
add("names of hashes", () => crypto.getHashes().join());
for (const name of ["aes-128-cbc", "AES-256-GCM", "id-aes256-GCM", "chacha20-poly1305", "aes-192-ctr", "des-ede3-cbc", "aes-128-ecb", "aes-256-ccm", "aes-128-wrap", "aes-128-ocb", "aes-256-xts", "nope", "", 419, 901, 0, null, undefined, {}]) {
  for (const options of [undefined, {}, { keyLength: 16 }, { keyLength: 32 }, { ivLength: 12 }, { ivLength: 16 }, { ivLength: 1000 }, { keyLength: "16" }, null]) add(`getCipherInfo ${String(name)} ${JSON.stringify(options)}`, () => JSON.stringify(crypto.getCipherInfo(name, options)));
}
const prime = crypto.getDiffieHellman("modp2").getPrime();
const person = (secret, generator = 2) => {
  const dh = crypto.createDiffieHellman(prime, generator);
  dh.setPrivateKey(hex(secret));
  dh.generateKeys();
  return dh;
};
for (const [one, other] of [["0203", "050607"], ["c51e4753afdec1e6b6c6a5b992f43f8d", "02"], ["ff".repeat(100), "ab".repeat(60)]]) {
  for (const generator of [2, 5, Buffer.from([7])]) {
    add(`dh public ${one.slice(0, 8)} ${String(generator)}`, () => person(one, generator).getPublicKey("hex"));
    add(`dh secret ${one.slice(0, 8)} ${String(generator)}`, () => person(one, generator).computeSecret(person(other, generator).getPublicKey(), null, "base64"));
    add(`dh private ${one.slice(0, 8)} ${String(generator)}`, () => person(one, generator).getPrivateKey("hex"));
  }
}
for (const key of [Buffer.from([0]), Buffer.from([1]), prime, Buffer.concat([Buffer.from([1]), prime])]) add(`dh with ${key.length} ${key[0]}`, () => person("0203").computeSecret(key));
for (const wrong of [null, undefined, {}, true, 1.5]) add(`createDiffieHellman ${String(wrong)}`, () => crypto.createDiffieHellman(wrong));
add("two sides agree", () => {
  const [alice, bob] = [crypto.createDiffieHellmanGroup("modp14"), crypto.createDiffieHellmanGroup("modp14")];
  alice.generateKeys();
  bob.generateKeys();
  return alice.computeSecret(bob.getPublicKey()).equals(bob.computeSecret(alice.getPublicKey()));
});

for (const number of [0n, 1n, 2n, 3n, 4n, 17n, 561n, 7919n, 2n ** 61n - 1n, 2n ** 89n - 1n, 2n ** 90n - 1n, -1n]) add(`checkPrime ${number}`, () => crypto.checkPrimeSync(number));
for (const wrong of ["5", 5, null, undefined]) add(`checkPrime ${typeof wrong} ${String(wrong)}`, () => crypto.checkPrimeSync(wrong));
for (const size of [2, 3, 16, 32, 128]) for (const safe of [false, true]) {
  if (size === 2 && safe) continue;
  add(`generatePrime ${size} ${safe}`, () => {
    const found = crypto.generatePrimeSync(size, { bigint: true, safe });
    return `${found.toString(2).length} ${crypto.checkPrimeSync(found)} ${!safe || crypto.checkPrimeSync((found - 1n) / 2n)}`;
  });
}
for (const size of [0, -1, 1.5, "8", null]) add(`generatePrime ${String(size)}`, () => crypto.generatePrimeSync(size));
add("generatePrime with a remainder", () => crypto.generatePrimeSync(32, { add: 12n, rem: 11n, bigint: true }) % 12n);

const PEM = `-----BEGIN PRIVATE KEY-----
MIICdgIBADANBgkqhkiG9w0BAQEFAASCAmAwggJcAgEAAoGBAKbrfv+ZEAWu2Zge
aX1Z5bCY9Kqf61Qd2fBqtHZnCQULPZlKXnqX0S4tB4wQhE3Yl1y9Nmv9fW8Hn1Qy
-----END PRIVATE KEY-----`;
add("a key that is cut", () => crypto.publicEncrypt(PEM, Buffer.from("x")));
let pair = null;
const keys = () => (pair ??= crypto.generateKeyPairSync("rsa", { modulusLength: 1024 }));
for (const padding of [1, 3, 4, 99]) {
  for (const oaepHash of [undefined, "sha256", "sha512", "nope"]) {
    for (const size of [0, 16, 60, 128, 129]) {
      add(`publicEncrypt ${padding} ${oaepHash} ${size}`, () => {
        const data = Buffer.alloc(size, 7);
        const options = { padding, oaepHash };
        return crypto.privateDecrypt({ key: keys().privateKey, ...options }, crypto.publicEncrypt({ key: keys().publicKey, ...options }, data)).equals(data);
      });
    }
  }
  for (const size of [0, 16, 117, 128]) add(`privateEncrypt ${padding} ${size}`, () => {
    const data = Buffer.alloc(size, 7);
    return crypto.publicDecrypt({ key: keys().publicKey, padding }, crypto.privateEncrypt({ key: keys().privateKey, padding }, data)).equals(data);
  });
}
add("a label", () => {
  const oaepLabel = Buffer.from("label");
  const secret = crypto.publicEncrypt({ key: keys().publicKey, oaepLabel }, Buffer.from("x"));
  return `${crypto.privateDecrypt({ key: keys().privateKey, oaepLabel }, secret)}`;
});
add("another label", () => crypto.privateDecrypt({ key: keys().privateKey, oaepLabel: Buffer.from("b") }, crypto.publicEncrypt({ key: keys().publicKey, oaepLabel: Buffer.from("a") }, Buffer.from("x"))));
for (const type of ["x25519", "ec"]) add(`diffieHellman ${type}`, () => {
  const [one, other] = [0, 1].map(() => crypto.generateKeyPairSync(type, { namedCurve: "P-256" }));
  return crypto.diffieHellman({ privateKey: one.privateKey, publicKey: other.publicKey }).equals(crypto.diffieHellman({ privateKey: other.privateKey, publicKey: one.publicKey }));
});
