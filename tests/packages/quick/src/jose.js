import * as jose from "jose";

export default async () => {
  const secret = new TextEncoder().encode("a secret of at least thirty two bytes");
  const token = await new jose.SignJWT({ user: "ann" }).setProtectedHeader({ alg: "HS256" }).setIssuedAt(1_700_000_000).setIssuer("shop").sign(secret);
  const { payload } = await jose.jwtVerify(token, secret, { issuer: "shop" });
  const wrong = await jose.jwtVerify(token, secret, { issuer: "other" }).catch((error) => [error.code, error.claim]);
  const { publicKey, privateKey } = await jose.generateKeyPair("ES256", { extractable: true });
  const signed = await new jose.CompactSign(new TextEncoder().encode("text")).setProtectedHeader({ alg: "ES256" }).sign(privateKey);
  const text = new TextDecoder().decode((await jose.compactVerify(signed, publicKey)).payload);
  const jwk = await jose.exportJWK(publicKey);
  const keys = jose.createLocalJWKSet({ keys: [{ ...jwk, kid: "1", alg: "ES256" }] });
  const byKey = await jose.jwtVerify(await new jose.SignJWT({ n: 1 }).setProtectedHeader({ alg: "ES256", kid: "1" }).sign(privateKey), keys);
  const sealed = await new jose.EncryptJWT({ a: 1 }).setProtectedHeader({ alg: "dir", enc: "A256GCM" }).encrypt(secret.slice(0, 32));
  return [token, payload, wrong, text, byKey.payload, (await jose.jwtDecrypt(sealed, secret.slice(0, 32))).payload, await jose.calculateJwkThumbprint({ kty: "oct", k: "abc" })];
};
