// https://nodejs.org/api/net.html: sockets over cloudflare:sockets' connections, and addresses. A worker does not listen.
import { invalidArgument, outOfRange } from "./errors.js";
import { Socket } from "./net_socket.js";
import { normalizeArgs } from "./net_options.js";

export { BlockList, isIP, isIPv4, isIPv6, SocketAddress } from "./net_addresses.js";
export { Socket };
export { Socket as Stream };
export { normalizeArgs as _normalizeArgs };

/** https://nodejs.org/api/net.html#netconnect */
export function connect(...args) {
  const normalized = normalizeArgs(args);
  const [options] = normalized;
  const socket = new Socket(options);
  if (options.timeout) socket.setTimeout(options.timeout);
  if (socket._aborted) return socket;
  return socket.connect(normalized);
}

export { connect as createConnection };

export function Server() {
  throw new Error("Server is not implemented");
}

export function createServer() {
  throw new Error("Server is not implemented");
}

// Python tries all addresses of a host in turn; these have no effect.
let autoSelectFamily = true;
let attemptTimeout = 250;

export function getDefaultAutoSelectFamily() {
  return autoSelectFamily;
}

export function setDefaultAutoSelectFamily(value) {
  if (typeof value !== "boolean") throw invalidArgument("value", "of type boolean", value);
  autoSelectFamily = value;
}

export function getDefaultAutoSelectFamilyAttemptTimeout() {
  return attemptTimeout;
}

export function setDefaultAutoSelectFamilyAttemptTimeout(value) {
  if (typeof value !== "number") throw invalidArgument("value", "of type number", value);
  if (!(Number.isInteger(value) && value >= 1 && value <= 2147483647)) throw outOfRange("value", ">= 1 && <= 2147483647", value);
  attemptTimeout = Math.max(value, 10);
}
