// The arguments of net.connect() and of Socket.connect(), checked as Node does.
import { codedError, invalidArgument, invalidValue, outOfRange, requireFunction } from "./errors.js";
import { invalidAddress, isIP, requirePort } from "./net_addresses.js";

const NORMALIZED = Symbol("normalized arguments");
const TIMEOUT_MAX = 2147483647;

/** https://github.com/nodejs/node/blob/main/lib/net.js: (options), (port, host) or (path), each with a listener: [options, listener]. */
export function normalizeArgs(args) {
  if (Array.isArray(args[0]) && args[0][NORMALIZED]) return args[0];
  const [first, second] = args;
  let options = {};
  if (typeof first === "object" && first !== null) options = first;
  else if (typeof first === "string" && !(Number(first) >= 0)) options.path = first;
  else if (args.length > 0) {
    options.port = first;
    if (typeof second === "string") options.host = second;
  }
  const listener = args.at(-1);
  const normalized = [options, typeof listener === "function" ? listener : null];
  normalized[NORMALIZED] = true;
  return normalized;
}

function missing() {
  return codedError(TypeError, "ERR_MISSING_ARGS", 'The "options" or "port" or "path" argument must be specified');
}

/** The options of the constructor that a socket over TCP cannot have. */
export function checkSocketOptions(options) {
  for (const name of ["objectMode", "readableObjectMode", "writableObjectMode"]) {
    if (options[name]) throw invalidValue(`options.${name}`, options[name], "is not supported");
  }
  const { keepAliveInitialDelay, fd } = options;
  if (keepAliveInitialDelay !== undefined && typeof keepAliveInitialDelay !== "number") {
    throw invalidArgument("options.keepAliveInitialDelay", "of type number", keepAliveInitialDelay);
  }
  if (fd !== undefined) throw codedError(Error, "ERR_OPTION_NOT_IMPLEMENTED", "The options.fd option is not implemented");
}

/** { host, port, lookup, family, hints } of the options of connect(). */
export function readTarget(options) {
  const { path, port, host = "localhost", localAddress, localPort, lookup, autoSelectFamily, autoSelectFamilyAttemptTimeout } = options;
  if (port === undefined && (path === undefined || path === null)) throw missing();
  if (path !== undefined && path !== null) throw invalidValue("path", path, "is not supported");
  if (localAddress && !isIP(localAddress)) throw invalidAddress(localAddress);
  if (localPort && typeof localPort !== "number") throw invalidArgument("options.localPort", "of type number", localPort);
  if (typeof port !== "number" && typeof port !== "string") throw invalidArgument("options.port", "of type number or string", port);
  const number = requirePort(port);
  if (autoSelectFamily !== undefined && autoSelectFamily !== null && typeof autoSelectFamily !== "boolean") {
    throw invalidArgument("options.autoSelectFamily", "of type boolean", autoSelectFamily);
  }
  if (autoSelectFamilyAttemptTimeout !== undefined && autoSelectFamilyAttemptTimeout !== null) {
    const name = "options.autoSelectFamilyAttemptTimeout";
    if (typeof autoSelectFamilyAttemptTimeout !== "number") throw invalidArgument(name, "of type number", autoSelectFamilyAttemptTimeout);
    if (!(autoSelectFamilyAttemptTimeout >= 1)) throw outOfRange(name, ">= 1 && <= 2147483647", autoSelectFamilyAttemptTimeout);
  }
  if (lookup !== undefined) requireFunction(lookup, "options.lookup");
  return { host, port: number, lookup, family: options.family, hints: options.hints };
}

/** https://nodejs.org/api/net.html#socketsettimeouttimeout-callback */
export function readTimeout(msecs, name = "msecs") {
  if (typeof msecs !== "number") throw invalidArgument(name, "of type number", msecs);
  if (msecs < 0 || !Number.isFinite(msecs)) throw outOfRange(name, "a non-negative finite number", msecs);
  return Math.min(msecs, TIMEOUT_MAX);
}
