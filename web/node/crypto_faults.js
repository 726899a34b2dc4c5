// The errors of OpenSSL as Node throws them. https://nodejs.org/api/errors.html#openssl-error-codes
import { codedError } from "./errors.js";

// The libraries that are part of a code, by OpenSSL's numbers.
const LIBRARIES = {
  __proto__: null,
  2: "SYS", 3: "BN", 4: "RSA", 5: "DH", 6: "EVP", 7: "BUF", 8: "OBJ", 9: "PEM", 10: "DSA", 11: "X509", 13: "ASN1", 14: "CONF", 15: "CRYPTO", 16: "EC", 32: "BIO",
  33: "PKCS7", 34: "X509V3", 36: "RAND", 38: "ENGINE", 39: "OCSP", 40: "UI", 41: "COMP", 44: "OSSL_STORE", 46: "CMS", 47: "TS", 50: "CT", 51: "ASYNC", 52: "KDF", 53: "SM2",
};

/** The error of a native function that returned text (Fault in crypto.h). `message` is for those without an error of OpenSSL. */
export function opensslError(text, message) {
  const [number, library, reason, whole] = text.split("\n");
  if (number === "0") return new Error(message);
  const name = LIBRARIES[number];
  const code = `ERR_OSSL_${name === undefined ? "" : `${name}_`}${reason.toUpperCase().replaceAll(" ", "_")}`;
  const error = new Error(whole);
  error.library = library;
  error.reason = reason;
  error.code = code;
  return error;
}

/** The result of a native function: it throws if that is text, undefined (a bound of Atoll) or null (no CPU time left). */
export function requireResult(result, message) {
  if (typeof result === "string") throw opensslError(result, message);
  if (result === undefined) throw codedError(Error, "ERR_CRYPTO_OPERATION_FAILED", message);
  if (result === null) throw codedError(Error, "ERR_CRYPTO_OPERATION_FAILED", `${message}: it needs more CPU time than this request has left; see limits.cpu_ms`);
  return result;
}
