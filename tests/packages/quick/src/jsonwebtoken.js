import jwt from "jsonwebtoken";
import { generateKeyPairSync } from "node:crypto";

export default () => {
  const now = { iat: 1_700_000_000 };
  const token = jwt.sign({ user: "ann", ...now }, "secret", { expiresIn: "1h" });
  const error = (call) => {
    try {
      return call();
    } catch (error) {
      return [error.name, error.message];
    }
  };
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const signed = jwt.sign({ user: "bob" }, privateKey, { algorithm: "RS256" });
  const pem = publicKey.export({ type: "spki", format: "pem" });
  return [
    token,
    jwt.decode(token, { complete: true }),
    error(() => jwt.verify(token, "secret")),
    error(() => jwt.verify(token, "other")),
    error(() => jwt.verify("nonsense", "secret")),
    jwt.verify(signed, pem, { algorithms: ["RS256"] }).user,
    error(() => jwt.verify(signed, pem, { algorithms: ["HS256"] })),
  ];
};
