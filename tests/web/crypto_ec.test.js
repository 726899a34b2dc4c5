// ECDSA and ECDH on P-256, P-384 and P-521; Ed25519 and X25519. Vectors without a source come from Node's own implementation.
import { deepEqual, equal, ok, rejects } from "./assert.js";

const { subtle } = crypto;
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
const bytes = (string) => Uint8Array.from(string.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const MESSAGE = new TextEncoder().encode("The quick brown fox");

// `own` and `peer` agree on `secret`; `signature` is of MESSAGE with SHA-512, by the key `spki`.
const VECTORS = {
  "P-256": {
    own: {
      kty: "EC",
      x: "BiOLJH_Qvxg_NS-rDggPRWMfrbSdjEO3ZR1sWAEmQQA",
      y: "5DJMjnw0-HpsUmqa3FoHpPfh3klzxdlMYIN7iV8dbRc",
      crv: "P-256",
      d: "UBItjPw1Uofw2hfCmpt8EcX2BW49vkD8odzWQCUA5Ws",
    },
    pkcs8: "308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b020101042050122d8cfc355287f0da17c29a9b7c11c5f6056e3dbe40fca1dcd6402500e56ba1440342000406238b247fd0bf183f352fab0e080f45631fadb49d8c43b7651d6c5801264100e4324c8e7c34f87a6c526a9adc5a07a4f7e1de4973c5d94c60837b895f1d6d17",
    peer: "04dfe98287a640024d1f253ccebb28074b600a79000a9b2d645ace46fab53c5108d7e6d0a666193a1739e7e4a44899c5ef260457f4b4f870b540b96ef48cbf79e0",
    secret: "f6382cfd0828eabff713be1c06769a70a650a18965225fbd1af4889e435eddfb",
    spki: "3059301306072a8648ce3d020106082a8648ce3d0301070342000495653bcf8f7ca708056016796ff6afe209f133d2a6867931e2c4106e6bd13613345da4ac20cfc9adc6c82b4758191aafd53962c2c2a6ef2805d03b965bfb9bcd",
    signature: "4f54e5f399d1564bc035e23ea31ea31021cb58e5f7549d5e3f63742e7f14172e370b416234cc7bf2dc75a72356cf9785eed6b2a1247f6afc29770482be0b2703",
  },
  "P-384": {
    own: {
      kty: "EC",
      x: "YXzmkuDOLImrDG3cB7KZtstL8vGlj8ZQRLGTOm07FfWRGhtg7V4TaXBo0LEyHUHR",
      y: "_X8Un4QNse42_E3YKCX7dDJBx_dM-T-I8ciTrK3-pDHL2Y72f0yUy_0FOoleBBfm",
      crv: "P-384",
      d: "7wHWNUAQymrtQ6jGtVJ-kOGMw2JL8qzee_cAwhh9HanLuPwYqrWPKEYXK0wYsL85",
    },
    pkcs8: "3081b6020100301006072a8648ce3d020106052b8104002204819e30819b0201010430ef01d6354010ca6aed43a8c6b5527e90e18cc3624bf2acde7bf700c2187d1da9cbb8fc18aab58f2846172b4c18b0bf39a16403620004617ce692e0ce2c89ab0c6ddc07b299b6cb4bf2f1a58fc65044b1933a6d3b15f5911a1b60ed5e13697068d0b1321d41d1fd7f149f840db1ee36fc4dd82825fb743241c7f74cf93f88f1c893acadfea431cbd98ef67f4c94cbfd053a895e0417e6",
    peer: "046cf6526decb74586840d1b61368620755cbf5434d3097b94d64852c148cef03be5b81a825e79f22fb3cffff1e1597fcb34b0bbed76c0c2cbc5bffb44967c283ecb186135cc1d0cf1898c55deee0967fad99314d178fffb7c0d45ca2a3c667d60",
    secret: "87788439784603babc45445f6186bd9b6fad69e7499a98c0245c9f14026d20995768d5a778e8485ed38c37b951645f5e",
    spki: "3076301006072a8648ce3d020106052b81040022036200049c859abc253032ac8c622379110d33109dc6cca2a5eb8d3ab2d78d9f5e7eda265179a5756794c3d91ff54d5d99386b7fde4ebfc05cc7347f9e9852d1fe703d714e1373e2613271f1edd8f7956d006dbd551af01fee1f7bf8feacf55a27731ff4",
    signature: "cac8f74ac1803524ede3b402954a6277e9313544ec5b4ec592d8fe62b6fd5d8f249220c31c156d512b8d4eb9b1ec4b8427a15e549692ab638446803caa803b8e413c3e5e5f4b2b5ccf25aa58bd6e1097e8ebd448a88eaf8a0e335fa03ba58204",
  },
  "P-521": {
    own: {
      kty: "EC",
      x: "AZE8uuGiqqa5T8gedxSEFQtOrBrgvnLpJx9lhcqxKjs2Vex6dU0bpbT1a_5ewEs2s74pUWYSTfU6T0JpvL77HKDW",
      y: "ATqPry1FUXrzg5Wjmx2FM1HH28wkyTsC3Zu38HclIPeX03MYfEyDDvSNV81xfa9LafeKuYj6jlLt_KInP4CJ-a-n",
      crv: "P-521",
      d: "AZaQWRBJccMuQ5YtvofyRNGGUhiGUZKobX6I31V8K7O7WYG1-TnviDxLOyguxRn2DpvU9hLqooKRBAsVJ3Da1YMI",
    },
    pkcs8: "3081ee020100301006072a8648ce3d020106052b810400230481d63081d3020101044201969059104971c32e43962dbe87f244d1865218865192a86d7e88df557c2bb3bb5981b5f939ef883c4b3b282ec519f60e9bd4f612eaa28291040b152770dad58308a18189038186000401913cbae1a2aaa6b94fc81e771484150b4eac1ae0be72e9271f6585cab12a3b3655ec7a754d1ba5b4f56bfe5ec04b36b3be295166124df53a4f4269bcbefb1ca0d6013a8faf2d45517af38395a39b1d853351c7dbcc24c93b02dd9bb7f0772520f797d373187c4c830ef48d57cd717daf4b69f78ab988fa8e52edfca2273f8089f9afa7",
    peer: "040171937ce2a38956ea33582c536eb31926f25554ccc0e294ca60a9e42c51e93df7cc7cd1442eed869f37229063d93bbfa73bb394116d69a48587b28eba555d217682001045f5d0b5877bd72e6f41dd5bbb1c7b40455dc0be3ffb4534dedd0b3b9b330b970cd513398b5d0ee085bdaf5d6b4bfbf89fb6a49bc94a47dcc1cbcb941bd7e608",
    secret: "010cdb3c5ab6b0863851d40cc1361b718295e6c2a1bf7f85c01cc6431dcd8803eefbe35c3def8230f416642c9bfc4a84b68d7a6bfda7043967b2c75bea43e9fe118c",
    spki: "30819b301006072a8648ce3d020106052b81040023038186000400e9a995e019a0d1af89d7ba08a3a7ed77ec8b6769d2ef5d035977b2d17e0722e3050e762d84ab3caff1317dd069e1a7225ec949df349617676b5950bf45d4f8c59f00a55f7eba4ced968f2150358a020c79eb20e9b5f7b41e950265e04e66f197f20ab271cb27bba68d0ff98f540995b02908832360e2dda2029b593a85dc5a49550915",
    signature: "0038f6bee5aa085a66c6ff7c263ab8019aa05a1193fbe4dc0fb85c34e952e5d7b67b93ddc0c6f57b024f869c889b2a9f3aedd903ef5df29450c722b28b64e71adc0f01337d53dc5184a1f5cfcf2e289fe2ef0d9100fd0d915359e1892e5db801258672d8f3f5be52f8a4dc66fffcae187ef7e7a9f5f509ec4adb2bab8dfc65ab8e622dd5",
  },
};

export const tests = {
  "ECDSA: the P-256 signature of RFC 6979, A.2.5": async () => {
    const point =
      "0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb67903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299";
    const signature =
      "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8";
    const key = await subtle.importKey("raw", bytes(point), { name: "ECDSA", namedCurve: "P-256" }, true, ["verify"]);
    const sample = new TextEncoder().encode("sample");
    equal(await subtle.verify({ name: "ECDSA", hash: "SHA-256" }, key, bytes(signature), sample), true);
    equal(await subtle.verify({ name: "ECDSA", hash: "SHA-384" }, key, bytes(signature), sample), false);
    equal(hex(await subtle.exportKey("raw", key)), point);
    const compressed = bytes(`03${point.slice(2, 66)}`);
    const same = await subtle.importKey("raw", compressed, { name: "ECDSA", namedCurve: "P-256" }, true, ["verify"]);
    equal(hex(await subtle.exportKey("raw", same)), point);
  },
  "ECDSA on every curve": async () => {
    for (const [namedCurve, { spki, signature }] of Object.entries(VECTORS)) {
      const algorithm = { name: "ECDSA", namedCurve };
      const hashed = { name: "ECDSA", hash: "SHA-512" };
      const key = await subtle.importKey("spki", bytes(spki), algorithm, true, ["verify"]);
      equal(await subtle.verify(hashed, key, bytes(signature), MESSAGE), true);
      equal(await subtle.verify(hashed, key, bytes(signature.slice(2)), MESSAGE), false);
      equal(await subtle.verify(hashed, key, new Uint8Array(signature.length / 2), MESSAGE), false);
      equal(await subtle.verify(hashed, key, new Uint8Array(0), MESSAGE), false);
      const pair = await subtle.generateKey(algorithm, true, ["sign", "verify"]);
      const own = await subtle.sign(hashed, pair.privateKey, MESSAGE);
      equal(own.byteLength, signature.length / 2);
      equal(await subtle.verify(hashed, pair.publicKey, own, MESSAGE), true);
      equal(await subtle.verify(hashed, key, own, MESSAGE), false);
      const jwk = await subtle.exportKey("jwk", pair.privateKey);
      const back = await subtle.importKey("jwk", jwk, algorithm, true, ["sign"]);
      equal(hex(await subtle.exportKey("pkcs8", back)), hex(await subtle.exportKey("pkcs8", pair.privateKey)));
      await rejects(subtle.importKey("jwk", { ...jwk, alg: "ES000" }, algorithm, true, ["sign"]), "DataError");
      await rejects(subtle.sign(hashed, pair.publicKey, MESSAGE), "InvalidAccessError");
      await rejects(subtle.sign("ECDSA", pair.privateKey, MESSAGE), TypeError);
    }
  },
  "ECDH on every curve, from every format": async () => {
    for (const [namedCurve, { own, pkcs8, peer, secret }] of Object.entries(VECTORS)) {
      const algorithm = { name: "ECDH", namedCurve };
      const open = await subtle.importKey("raw", bytes(peer), algorithm, true, []);
      const params = { name: "ECDH", public: open };
      const keys = [
        await subtle.importKey("jwk", own, algorithm, true, ["deriveBits", "deriveKey"]),
        await subtle.importKey("pkcs8", bytes(pkcs8), algorithm, true, ["deriveBits", "deriveKey"]),
      ];
      for (const key of keys) {
        equal(hex(await subtle.deriveBits(params, key)), secret);
        equal(hex(await subtle.deriveBits(params, key, null)), secret);
        equal(hex(await subtle.deriveBits(params, key, 128)), secret.slice(0, 32));
        equal((await subtle.deriveBits(params, key, 0)).byteLength, 0);
        const odd = new Uint8Array(await subtle.deriveBits(params, key, 13));
        deepEqual([...odd], [bytes(secret)[0], bytes(secret)[1] & 0xf8]);
        await rejects(subtle.deriveBits(params, key, 1024), "OperationError");
        equal(hex(await subtle.exportKey("pkcs8", key)), pkcs8);
        const jwk = await subtle.exportKey("jwk", key);
        for (const member of Object.keys(own)) equal(jwk[member], own[member]);
        const aes = await subtle.deriveKey(params, key, { name: "AES-CBC", length: 128 }, true, ["encrypt"]);
        equal(hex(await subtle.exportKey("raw", aes)), secret.slice(0, 32));
      }
      await rejects(subtle.importKey("raw", bytes(peer), algorithm, true, ["deriveBits"]), "SyntaxError");
    }
  },
  "ECDH refuses keys of another kind": async () => {
    const a = await subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, true, ["deriveBits"]);
    const b = await subtle.generateKey({ name: "ECDH", namedCurve: "P-384" }, true, ["deriveBits"]);
    const x = await subtle.generateKey("X25519", true, ["deriveBits"]);
    const derive = (peer, key) => subtle.deriveBits({ name: "ECDH", public: peer }, key, 8);
    await rejects(derive(b.publicKey, a.privateKey), "InvalidAccessError");
    await rejects(derive(x.publicKey, a.privateKey), "InvalidAccessError");
    await rejects(derive(a.privateKey, a.privateKey), "InvalidAccessError");
    await rejects(derive(a.publicKey, a.publicKey), "InvalidAccessError");
    await rejects(derive(a.publicKey, x.privateKey), "InvalidAccessError");
    await rejects(derive({}, a.privateKey), TypeError);
    await rejects(derive(undefined, a.privateKey), TypeError);
  },
  "points that are not on the curve are refused": async () => {
    const { own, spki } = VECTORS["P-256"];
    const algorithm = { name: "ECDSA", namedCurve: "P-256" };
    const point = new Uint8Array(65).fill(7);
    point[0] = 4;
    await rejects(subtle.importKey("raw", point, algorithm, true, ["verify"]), "DataError");
    await rejects(subtle.importKey("raw", new Uint8Array(1), algorithm, true, ["verify"]), "DataError");
    await rejects(subtle.importKey("raw", new Uint8Array(0), algorithm, true, ["verify"]), "DataError");
    await rejects(subtle.importKey("raw", new Uint8Array(1_000_000), algorithm, true, ["verify"]), "DataError");
    await rejects(subtle.importKey("jwk", { ...own, x: own.y }, algorithm, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("jwk", { ...own, d: own.x }, algorithm, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("jwk", { ...own, d: own.d.slice(2) }, algorithm, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("jwk", { ...own, crv: "P-384" }, algorithm, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("jwk", { ...own, y: undefined }, algorithm, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("jwk", own, { name: "ECDSA", namedCurve: "P-521" }, true, ["sign"]), "DataError");
    await rejects(subtle.importKey("spki", bytes(`${spki}00`), algorithm, true, ["verify"]), "DataError");
    await rejects(subtle.importKey("spki", bytes(spki), { name: "ECDSA", namedCurve: "P-384" }, true, ["verify"]), "DataError");
    await rejects(subtle.generateKey({ name: "ECDSA", namedCurve: "P-257" }, true, ["sign"]), "NotSupportedError");
    await rejects(subtle.generateKey({ name: "ECDSA" }, true, ["sign"]), TypeError);
    await rejects(subtle.generateKey(algorithm, true, ["verify"]), "SyntaxError");
  },
  "Ed25519: RFC 8032, test 2": async () => {
    const secret = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
    const open = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    const expected =
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
    const pkcs8 = bytes(`302e020100300506032b657004220420${secret}`);
    const key = await subtle.importKey("pkcs8", pkcs8, "Ed25519", true, ["sign"]);
    const verifying = await subtle.importKey("raw", bytes(open), "ed25519", true, ["verify"]);
    deepEqual(verifying.algorithm, { name: "Ed25519" });
    const signature = await subtle.sign("Ed25519", key, bytes("72"));
    equal(hex(signature), expected);
    equal(await subtle.verify("Ed25519", verifying, signature, bytes("72")), true);
    equal(await subtle.verify("Ed25519", verifying, signature, bytes("73")), false);
    equal(await subtle.verify("Ed25519", verifying, signature.slice(1), bytes("72")), false);
    equal(hex(await subtle.exportKey("pkcs8", key)), hex(pkcs8));
    const jwk = await subtle.exportKey("jwk", key);
    equal(jwk.kty, "OKP");
    equal(jwk.crv, "Ed25519");
    const back = await subtle.importKey("jwk", jwk, "Ed25519", false, ["sign"]);
    equal(hex(await subtle.sign("Ed25519", back, bytes("72"))), expected);
    await rejects(subtle.importKey("jwk", { ...jwk, x: jwk.d }, "Ed25519", true, ["sign"]), "DataError");
    await rejects(subtle.importKey("jwk", { ...jwk, crv: "X25519" }, "Ed25519", true, ["sign"]), "DataError");
    await rejects(subtle.importKey("jwk", { ...jwk, alg: "ES256" }, "Ed25519", true, ["sign"]), "DataError");
    ok(await subtle.importKey("jwk", { ...jwk, alg: "EdDSA" }, "Ed25519", true, ["sign"]));
    await rejects(subtle.importKey("raw", bytes(open).subarray(1), "Ed25519", true, ["verify"]), "DataError");
    await rejects(subtle.importKey("raw", bytes(open), "Ed25519", true, ["sign"]), "SyntaxError");
  },
  "Ed25519 refuses points of small order": async () => {
    // With the neutral element as key and R, any message would have this signature.
    const neutral = bytes(`01${"00".repeat(31)}`);
    const key = await subtle.importKey("raw", neutral, "Ed25519", true, ["verify"]);
    equal(await subtle.verify("Ed25519", key, bytes(`01${"00".repeat(63)}`), MESSAGE), false);
  },
  "X25519: RFC 7748, section 6.1": async () => {
    const secret = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
    const peer = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";
    const shared = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742";
    const pkcs8 = bytes(`302e020100300506032b656e04220420${secret}`);
    const key = await subtle.importKey("pkcs8", pkcs8, "X25519", true, ["deriveBits", "deriveKey"]);
    const open = await subtle.importKey("raw", bytes(peer), "X25519", true, []);
    equal(hex(await subtle.deriveBits({ name: "x25519", public: open }, key)), shared);
    equal(hex(await subtle.deriveBits({ name: "X25519", public: open }, key, 64)), shared.slice(0, 16));
    await rejects(subtle.deriveBits({ name: "X25519", public: open }, key, 264), "OperationError");
    const jwk = await subtle.exportKey("jwk", key);
    equal(jwk.alg, undefined);
    const back = await subtle.importKey("jwk", jwk, "X25519", true, ["deriveBits"]);
    equal(hex(await subtle.deriveBits({ name: "X25519", public: open }, back, 256)), shared);
    const spki = await subtle.exportKey("spki", open);
    equal(hex(spki), `302a300506032b656e032100${peer}`);
    ok(await subtle.importKey("spki", spki, "X25519", true, []));
    await rejects(subtle.importKey("spki", spki, "Ed25519", true, ["verify"]), "DataError");
    await rejects(subtle.exportKey("raw", key), "InvalidAccessError");
  },
  "X25519 refuses points of small order": async () => {
    const pair = await subtle.generateKey("X25519", true, ["deriveBits"]);
    for (const first of [0, 1]) {
      const bad = await subtle.importKey("raw", new Uint8Array([first, ...new Uint8Array(31)]), "X25519", true, []);
      await rejects(subtle.deriveBits({ name: "X25519", public: bad }, pair.privateKey, 256), "OperationError");
    }
  },
};
