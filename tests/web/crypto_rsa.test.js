// RSASSA-PKCS1-v1_5, RSA-PSS and RSA-OAEP. The key and the test data come from Node's own implementation.
import { deepEqual, equal, ok, rejects } from "./assert.js";

const { subtle } = crypto;
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
const bytes = (string) => Uint8Array.from(string.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const MESSAGE = new TextEncoder().encode("The quick brown fox");
const F4 = new Uint8Array([1, 0, 1]);

const PRIVATE = {
  kty: "RSA",
  n: "5Mnsql0sdK4qMpw-QXVtHDUkcwPQA-698eDCNH3CjTMNNuQlHsY_6mf3m2WKCVtOQ0wr3EKFFEwN1d31JlJGF1r7OgSZENRQeydxWE9utRON_pmRlWQ06z6c8ggsq_RQZrTz9TbqRzsetf0DdSIjtjo2ncinp0uHQgEK7y72KMs",
  e: "AQAB",
  d: "NuKiHfSgN5WYle-Zl8Z92Gh_SABAJNFfS-lpbYJF6-21W9e7d_iDWM58PhFL3hbDXa2mT_69QjNElmva5ciS-487udSK6M8Uxap4hLBn0XUrmCDW_LR7OOVK87CJcSOWWgL3OpB4NTSeK01zNPhx4PtJY8_v9ehatWI0Ibms8FE",
  p: "9i7XYrUa-5idw9qufJwIq4uYG4RuaZXjFG8wmRtCVXlwmE_ZFgawX4UJz96_yNYcTJSoqQFWBWvdcm5UJBj3DQ",
  q: "7emDrq1Cow56TbOHxvXxybjpI7ISsvpCSVBsFk7FmiiT7-AakfpCqWTaIge3zATLHcJHCaONSZ00WERrJCgpNw",
  dp: "ZtD7XZs70LZVtZWgaCSWrmaXuW5e2rQh6cfiaR9sXdxhPQukI8HZaZtblLh4Kr3ZhdZUdnk7XvpEu2T-uTDABQ",
  dq: "iNRQg9nqBVWCScYDRQ6WbOoITBtSXdVI4ll6kKnlQ_AqhT9iiKpiRIJYYlIGBzSKjSb7LDQAQmJDhLB03mqqqQ",
  qi: "ePfnX96qgv5YlMT7DgEClbdRsYAzHHVhuM7sk37CN7wv40JeWRkx2mnVruPsQKQ017BHQ40EHpXf0jZFs0cfhg",
};
const PUBLIC = { kty: "RSA", n: PRIVATE.n, e: PRIVATE.e };
const SPKI =
  "30819f300d06092a864886f70d010101050003818d0030818902818100e4c9ecaa5d2c74ae2a329c3e41756d1c35247303d003eebdf1e0c2347dc28d330d36e4251ec63fea67f79b658a095b4e434c2bdc4285144c0dd5ddf5265246175afb3a049910d4507b2771584f6eb5138dfe9991956434eb3e9cf2082cabf45066b4f3f536ea473b1eb5fd03752223b63a369dc8a7a74b8742010aef2ef628cb0203010001";
const PKCS1_SIGNATURE =
  "6ed9f0d32c7ef43b81b8255615cf0c5f9244261feb46894416eb7288d22ce6388a541d33c7580ad9931c342f0f35dc5bacc70b498a9a819c5dc427c1217d5687547db5dc342b682815c56721bf63ee5e64391ad8072a55becb4d3477455b2ed602e0b1acc9e1688946a45fe149a6f90f5e5d4bbbb623debd98b54f9c6a6557b1";
const PSS_SIGNATURE =
  "e23359cbce7bbd1899276692493e04961e91430643924454ee8cf5d720315bd6ce7a58ab04bcd36f0422fb943ca53f89aad0ef4c28ada8cc227be84da36525e8ace854f237ab384bca2ccfd168105803c216a2b13093bf7f3864f2742d09b3b3512167ea8dfc9ff83d49a05452524a2082275f54e4f9958701af42638410e177";
const OAEP_CIPHER =
  "a6bf9c56b96d1761cd8511c9417484fc3a7d40f99144b5b3e86dc4cda6d2b7197b2968ceefb857b82796812dd53cba475f3d2118aa7fc8dc9aed979f8061de582ff4493f7000ff249a22f08bcb5a6e95538c0383ea46cd3e07bb8daff246967c371af2577ccb7caecaca01e3a1d398d38d304397cb11e2f1b133743c11ff201b";

const importPrivate = (name, usages, hash = "SHA-256") => subtle.importKey("jwk", PRIVATE, { name, hash }, true, usages);
const importPublic = (name, usages, hash = "SHA-256") => subtle.importKey("jwk", PUBLIC, { name, hash }, true, usages);

export const tests = {
  "PKCS #1 signatures match other implementations": async () => {
    const name = "RSASSA-PKCS1-v1_5";
    const signing = await importPrivate(name, ["sign"]);
    const verifying = await importPublic(name, ["verify"]);
    const signature = await subtle.sign(name, signing, MESSAGE);
    equal(hex(signature), PKCS1_SIGNATURE);
    equal(await subtle.verify(name, verifying, signature, MESSAGE), true);
    equal(await subtle.verify(name, verifying, signature, MESSAGE.subarray(1)), false);
    equal(await subtle.verify(name, verifying, signature.slice(0, 127), MESSAGE), false);
    equal(await subtle.verify(name, verifying, new Uint8Array(0), MESSAGE), false);
    equal(await subtle.verify(name, verifying, new Uint8Array(129), MESSAGE), false);
    await rejects(subtle.sign(name, verifying, MESSAGE), "InvalidAccessError");
    await rejects(subtle.verify(name, signing, signature, MESSAGE), "InvalidAccessError");
  },
  "PSS": async () => {
    const verifying = await importPublic("RSA-PSS", ["verify"]);
    const signing = await importPrivate("RSA-PSS", ["sign"]);
    equal(await subtle.verify({ name: "RSA-PSS", saltLength: 32 }, verifying, bytes(PSS_SIGNATURE), MESSAGE), true);
    equal(await subtle.verify({ name: "RSA-PSS", saltLength: 31 }, verifying, bytes(PSS_SIGNATURE), MESSAGE), false);
    for (const saltLength of [0, 10, 94]) {
      const signature = await subtle.sign({ name: "RSA-PSS", saltLength }, signing, MESSAGE);
      equal(await subtle.verify({ name: "RSA-PSS", saltLength }, verifying, signature, MESSAGE), true);
    }
    for (const saltLength of [95, 1000, 2 ** 32 - 1]) {
      await rejects(subtle.sign({ name: "RSA-PSS", saltLength }, signing, MESSAGE), "OperationError");
      equal(await subtle.verify({ name: "RSA-PSS", saltLength }, verifying, bytes(PSS_SIGNATURE), MESSAGE), false);
    }
    await rejects(subtle.sign({ name: "RSA-PSS" }, signing, MESSAGE), TypeError);
    await rejects(subtle.sign({ name: "RSA-PSS", saltLength: -1 }, signing, MESSAGE), TypeError);
  },
  "OAEP": async () => {
    const decrypting = await importPrivate("RSA-OAEP", ["decrypt"]);
    const encrypting = await importPublic("RSA-OAEP", ["encrypt"]);
    const algorithm = { name: "RSA-OAEP", label: bytes("cafe") };
    equal(hex(await subtle.decrypt(algorithm, decrypting, bytes(OAEP_CIPHER))), hex(MESSAGE));
    const cipher = await subtle.encrypt(algorithm, encrypting, MESSAGE);
    equal(hex(await subtle.decrypt(algorithm, decrypting, cipher)), hex(MESSAGE));
    const empty = await subtle.encrypt("RSA-OAEP", encrypting, new Uint8Array(0));
    equal((await subtle.decrypt("RSA-OAEP", decrypting, empty)).byteLength, 0);
    await rejects(subtle.decrypt("RSA-OAEP", decrypting, cipher), "OperationError");
    await rejects(subtle.decrypt(algorithm, decrypting, cipher.slice(1)), "OperationError");
    await rejects(subtle.decrypt(algorithm, decrypting, new Uint8Array(128).fill(255)), "OperationError");
    equal((await subtle.encrypt(algorithm, encrypting, new Uint8Array(62))).byteLength, 128);
    await rejects(subtle.encrypt(algorithm, encrypting, new Uint8Array(63)), "OperationError");
  },
  "keys in every format": async () => {
    for (const name of ["RSASSA-PKCS1-v1_5", "RSA-PSS", "RSA-OAEP"]) {
      const isCipher = name === "RSA-OAEP";
      const key = await importPrivate(name, [isCipher ? "decrypt" : "sign"], "SHA-384");
      const open = await subtle.importKey("spki", bytes(SPKI), { name, hash: "SHA-384" }, true, [isCipher ? "encrypt" : "verify"]);
      equal(key.type, "private");
      equal(open.type, "public");
      deepEqual(open.algorithm, { name, modulusLength: 1024, publicExponent: F4, hash: { name: "SHA-384" } });
      const pkcs8 = await subtle.exportKey("pkcs8", key);
      const again = await subtle.importKey("pkcs8", pkcs8, { name, hash: "SHA-1" }, true, [isCipher ? "unwrapKey" : "sign"]);
      const jwk = await subtle.exportKey("jwk", again);
      for (const member of Object.keys(PRIVATE)) equal(jwk[member], PRIVATE[member], member);
      equal(jwk.alg, { "RSASSA-PKCS1-v1_5": "RS1", "RSA-PSS": "PS1", "RSA-OAEP": "RSA-OAEP" }[name]);
      equal(hex(await subtle.exportKey("spki", open)), SPKI);
      equal("d" in (await subtle.exportKey("jwk", open)), false);
      await rejects(subtle.exportKey("spki", key), "InvalidAccessError");
      await rejects(subtle.exportKey("pkcs8", open), "InvalidAccessError");
      await rejects(subtle.exportKey("raw", open), "NotSupportedError");
    }
  },
  "invalid key numbers are refused": async () => {
    const algorithm = { name: "RSA-PSS", hash: "SHA-256" };
    for (const member of ["n", "e", "p", "q", "dp", "dq", "qi"]) {
      const { [member]: removed, ...without } = PRIVATE;
      ok(removed);
      await rejects(subtle.importKey("jwk", without, algorithm, true, ["sign"]), "DataError", `without ${member}`);
      const others = { ...PRIVATE, [member]: "AQAB5w" };
      await rejects(subtle.importKey("jwk", others, algorithm, true, ["sign"]), "DataError", `other ${member}`);
      const broken = { ...PRIVATE, [member]: "*" };
      await rejects(subtle.importKey("jwk", broken, algorithm, true, ["sign"]), "DataError", `broken ${member}`);
    }
    await rejects(subtle.importKey("jwk", { ...PRIVATE, d: "AQAB" }, algorithm, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("jwk", { ...PRIVATE, oth: [] }, algorithm, true, ["sign"]), "NotSupportedError");
    await rejects(subtle.importKey("jwk", { ...PRIVATE, alg: "PS512" }, algorithm, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("jwk", PUBLIC, algorithm, true, ["sign"]), "SyntaxError");
    await rejects(subtle.importKey("jwk", PRIVATE, algorithm, true, []), "SyntaxError");
    await rejects(subtle.importKey("spki", bytes(`${SPKI}00`), algorithm, true, ["verify"]), "DataError");
    await rejects(subtle.importKey("spki", bytes(SPKI.slice(2)), algorithm, true, ["verify"]), "DataError");
    await rejects(subtle.importKey("pkcs8", bytes(SPKI), algorithm, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("raw", bytes(SPKI), algorithm, true, ["verify"]), "NotSupportedError");
    await rejects(subtle.importKey("spki", new Uint8Array(1_000_000), algorithm, true, ["verify"]), "DataError");
    const giant = btoa("\xff".repeat(5000)).replaceAll("/", "_").replaceAll("=", "");
    await rejects(subtle.importKey("jwk", { ...PUBLIC, n: giant }, algorithm, true, ["verify"]), "DataError");
  },
  "a generated pair works and has the right attributes": async () => {
    const algorithm = { name: "RSASSA-PKCS1-v1_5", modulusLength: 1024, publicExponent: new Uint8Array([0, 1, 0, 1]), hash: "SHA-512" };
    const { privateKey, publicKey } = await subtle.generateKey(algorithm, false, ["sign", "verify"]);
    equal(privateKey.extractable, false);
    equal(publicKey.extractable, true);
    deepEqual(privateKey.usages, ["sign"]);
    deepEqual(publicKey.usages, ["verify"]);
    equal(publicKey.algorithm.modulusLength, 1024);
    equal(hex(publicKey.algorithm.publicExponent), "00010001");
    const signature = await subtle.sign(algorithm.name, privateKey, MESSAGE);
    equal(await subtle.verify(algorithm.name, publicKey, signature, MESSAGE), true);
    await rejects(subtle.exportKey("jwk", privateKey), "InvalidAccessError");
  },
  "invalid and forbidden key pairs": async () => {
    const algorithm = { name: "RSA-PSS", modulusLength: 1024, publicExponent: F4, hash: "SHA-256" };
    for (const exponent of [[], [0], [1], [2], [4], Array(9).fill(255), Array(1000).fill(1)]) {
      const publicExponent = new Uint8Array(exponent);
      await rejects(subtle.generateKey({ ...algorithm, publicExponent }, true, ["sign"]), "OperationError");
    }
    for (const modulusLength of [0, 1, 256, 16384, 2 ** 32 - 1]) {
      await rejects(subtle.generateKey({ ...algorithm, modulusLength }, true, ["sign"]), "OperationError");
    }
    await rejects(subtle.generateKey({ ...algorithm, publicExponent: [1, 0, 1] }, true, ["sign"]), TypeError);
    await rejects(subtle.generateKey({ ...algorithm, hash: undefined }, true, ["sign"]), TypeError);
    await rejects(subtle.generateKey(algorithm, true, ["verify"]), "SyntaxError");
    await rejects(subtle.generateKey(algorithm, true, ["encrypt"]), "SyntaxError");
  },
  "many at once": async () => {
    const key = await importPrivate("RSASSA-PKCS1-v1_5", ["sign"]);
    const all = await Promise.all(Array.from({ length: 100 }, () => subtle.sign("RSASSA-PKCS1-v1_5", key, MESSAGE)));
    ok(all.every((signature) => hex(signature) === PKCS1_SIGNATURE));
  },
};
