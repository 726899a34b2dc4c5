"""Packages from npm run unchanged: each test bundles a worker with esbuild, as a user would, and calls it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.running import Atoll

ROOT = Path(__file__).parents[2]
ESBUILD = ROOT / "node_modules/.bin/esbuild"
# A fresh clone without `make dev` has no packages.
pytestmark = pytest.mark.skipif(not ESBUILD.exists(), reason="run `make dev` first")


def bundle(source: str) -> str:
    """The worker and all its imports, as one module."""
    command = [
        ESBUILD,
        "--bundle",
        "--format=esm",
        "--platform=neutral",
        "--main-fields=module,main",
        "--log-level=error",
    ]
    conditions = "--conditions=workerd,worker,browser,import"
    result = subprocess.run(
        [*command, conditions], input=source, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def run(atoll: Atoll, name: str, source: str) -> object:
    """Deploys the bundle and returns its answer."""
    atoll.deploy(name, bundle(source), limits={"cpu_ms": 5000})
    answer = atoll.get(name)
    assert answer.status == 200, answer.text
    return answer.json


# --- cryptography ---

JOSE = """
import * as jose from "jose";

async function roundTrip(alg, options) {
  const { publicKey, privateKey } = await jose.generateKeyPair(alg, { extractable: true, ...options });
  const token = await new jose.SignJWT({ admin: true })
    .setProtectedHeader({ alg }).setSubject("me").setIssuedAt().setExpirationTime("2h").sign(privateKey);
  const jwks = jose.createLocalJWKSet({ keys: [{ ...(await jose.exportJWK(publicKey)), alg }] });
  const { payload } = await jose.jwtVerify(token, jwks, { subject: "me" });
  const forged = token.slice(0, -6) + (token.endsWith("AAAAAA") ? "BBBBBB" : "AAAAAA");
  const error = await jose.jwtVerify(forged, publicKey).catch((error) => error.code);
  const pem = await jose.importPKCS8(await jose.exportPKCS8(privateKey), alg);
  return [payload.admin, error, pem.type];
}

async function encrypted() {
  const secret = jose.base64url.decode("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY");
  const jwe = await new jose.EncryptJWT({ n: 1 }).setProtectedHeader({ alg: "dir", enc: "A256GCM" }).encrypt(secret);
  const { publicKey, privateKey } = await jose.generateKeyPair("ECDH-ES+A128KW");
  const second = await new jose.CompactEncrypt(new TextEncoder().encode("hi"))
    .setProtectedHeader({ alg: "ECDH-ES+A128KW", enc: "A128CBC-HS256" }).encrypt(publicKey);
  const { plaintext } = await jose.compactDecrypt(second, privateKey);
  return [(await jose.jwtDecrypt(jwe, secret)).payload.n, new TextDecoder().decode(plaintext)];
}

export default {
  async fetch() {
    const out = {};
    for (const alg of ["RS256", "PS384", "ES256", "ES384", "ES512", "EdDSA"]) out[alg] = await roundTrip(alg);
    const secret = new TextEncoder().encode("a secret of thirty-two bytes ...");
    const token = await new jose.SignJWT({}).setProtectedHeader({ alg: "HS256" }).sign(secret);
    out.HS256 = (await jose.jwtVerify(token, secret)).protectedHeader.alg;
    // The example of RFC 7515, A.1.
    const key = await jose.importJWK({
      kty: "oct", alg: "HS256",
      k: "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow",
    });
    const { payload } = await jose.compactVerify(
      "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt" +
      "cGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", key);
    out.rfc = JSON.parse(new TextDecoder().decode(payload)).iss;
    out.encrypted = await encrypted();
    return Response.json(out);
  },
};
"""

NOBLE = """
import { hmac } from "@noble/hashes/hmac.js";
import { sha256, sha512 } from "@noble/hashes/sha2.js";
import { sha3_256 } from "@noble/hashes/sha3.js";
import { blake3 } from "@noble/hashes/blake3.js";
import { scrypt } from "@noble/hashes/scrypt.js";
import { bytesToHex, randomBytes, utf8ToBytes } from "@noble/hashes/utils.js";

export default {
  async fetch() {
    const data = utf8ToBytes("abc");
    const own = new Uint8Array(await crypto.subtle.digest("SHA-512", data));
    return Response.json({
      sha256: bytesToHex(sha256(data)),
      sha512: bytesToHex(sha512(data)) === bytesToHex(own),
      sha3: bytesToHex(sha3_256(data)),
      blake3: bytesToHex(blake3(new Uint8Array(0))),
      hmac: bytesToHex(hmac(sha256, utf8ToBytes("Jefe"), utf8ToBytes("what do ya want for nothing?"))),
      scrypt: bytesToHex(scrypt("password", "NaCl", { N: 1024, r: 8, p: 16, dkLen: 64 })).slice(0, 16),
      random: randomBytes(16).length,
    });
  },
};
"""


def test_jose_signs_verifies_and_encrypts_tokens(atoll: Atoll) -> None:
    out = run(atoll, "package-jose", JOSE)
    assert isinstance(out, dict)
    refused = "ERR_JWS_SIGNATURE_VERIFICATION_FAILED"
    for alg in ("RS256", "PS384", "ES256", "ES384", "ES512", "EdDSA"):
        assert out[alg] == [True, refused, "private"], alg
    assert (out["HS256"], out["rfc"], out["encrypted"]) == ("HS256", "joe", [1, "hi"])


def test_noble_hashes(atoll: Atoll) -> None:
    assert run(atoll, "package-noble", NOBLE) == {
        "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "sha512": True,
        "sha3": "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532",
        "blake3": "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        "hmac": "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        "scrypt": "fdbabe1c9d347200",
        "random": 16,
    }
