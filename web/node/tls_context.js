// https://nodejs.org/api/tls.html: what a connection over TLS is checked against. Python has the checks; this keeps the wishes.
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument } from "./errors.js";

const CLIENT = ["cert", "key", "pfx"];

/** https://nodejs.org/api/tls.html#tlscreatesecurecontextoptions. A function, because it is also called without `new`. */
export function SecureContext(options = {}) {
  if (!(this instanceof SecureContext)) return new SecureContext(options);
  for (const name of CLIENT) {
    if (options[name] !== undefined && options[name] !== null) {
      throw codedError(Error, "ERR_OPTION_NOT_IMPLEMENTED", `The options.${name} option is not implemented`);
    }
  }
  const { ca } = options;
  this.context = { ca: ca === undefined || ca === null ? "" : [ca].flat().map(textOf).join("\n") };
}

function textOf(certificate) {
  if (typeof certificate === "string") return certificate;
  if (ArrayBuffer.isView(certificate)) return Buffer.from(certificate.buffer, certificate.byteOffset, certificate.byteLength).toString("latin1");
  throw invalidArgument("options.ca", "of type string or an instance of Buffer, TypedArray, or DataView", certificate);
}

export function createSecureContext(options = {}) {
  return new SecureContext(options);
}

/** The details of a certificate: of a chain, and of access to information about it. */
export function translatePeerCertificate(certificate) {
  if (!certificate) return null;
  if (typeof certificate !== "object") return certificate;
  const { issuerCertificate, infoAccess } = certificate;
  if (issuerCertificate !== undefined && issuerCertificate !== certificate) {
    certificate.issuerCertificate = translatePeerCertificate(issuerCertificate);
  }
  if (infoAccess !== undefined && infoAccess !== null) {
    const found = { __proto__: null };
    for (const [, key, value] of `${infoAccess}`.matchAll(/([^\n:]*):([^\n]*)(?:\n|$)/g)) (found[key] ??= []).push(value);
    certificate.infoAccess = found;
  }
  return certificate;
}
