// Errors of node:net and node:tls.
import { codedError } from "./errors.js";

const LOST = "Network connection lost.";

// What Python says about a failed connection -> the code that Node would give.
const CODES = [
  [/connection refused/, "ECONNREFUSED"],
  [/cannot be resolved|has no address|not a valid host/, "ENOTFOUND"],
  [/within [\d.]+ s$|timed out/, "ETIMEDOUT"],
  [/unreachable/, "ENETUNREACH"],
  [/certificate/, "ERR_TLS_CERT_ALTNAME_INVALID"],
  [/may not be reached/, "EACCES"],
];

/** Gives an error the code that Node would. */
export function withCode(error) {
  if (typeof error !== "object" || error === null || error.code !== undefined) return error;
  const code = CODES.find(([pattern]) => pattern.test(`${error.cause?.message ?? error.message}`))?.[1];
  if (error.message === LOST) error.code = "ECONNRESET";
  else if (error.cause !== undefined) error.code = code ?? "ECONNREFUSED";
  else if (code !== undefined && error instanceof TypeError) error.code = code; // an error of fetch
  return error;
}

export function closedBefore() {
  return codedError(Error, "ERR_SOCKET_CLOSED_BEFORE_CONNECTION", "Socket closed before the connection was established");
}

export function socketClosed() {
  return codedError(Error, "ERR_SOCKET_CLOSED", "Socket is closed");
}
