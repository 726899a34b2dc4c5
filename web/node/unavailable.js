// Modules that packages import but that a worker cannot use: processes, sockets, threads. Each function throws an error.
import { codedError } from "./errors.js";

function refuse(what) {
  throw codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", `${what} is not available in a worker`);
}

/** Functions with these names. Each throws an error that names it, whether called or constructed. */
export function unavailable(module, names) {
  return Object.fromEntries(
    names.map((name) => {
      // A function expression, because some of these are used as classes.
      const refuser = function () {
        refuse(`node:${module}: ${name}`);
      };
      return [name, Object.defineProperty(refuser, "name", { value: name })];
    }),
  );
}

const environmentData = new Map();

// module -> the functions that throw, and its other exports
const MODULES = {
  child_process: [["exec", "execFile", "execFileSync", "execSync", "fork", "spawn", "spawnSync", "ChildProcess"]],
  cluster: [["fork", "setupPrimary"], { isMaster: true, isPrimary: true, isWorker: false, workers: {} }],
  dgram: [["createSocket", "Socket"]],
  http2: [
    ["connect", "createSecureServer", "createServer", "getDefaultSettings", "getPackedSettings", "getUnpackedSettings", "performServerHandshake", "Http2ServerRequest", "Http2ServerResponse"],
    { constants: {}, sensitiveHeaders: Symbol("nodejs.http2.sensitiveHeaders") },
  ],
  inspector: [["open", "close", "url", "Session"]],
  readline: [["createInterface", "clearLine", "cursorTo", "Interface"]],
  repl: [["start"]],
  v8: [["getHeapStatistics", "getHeapSnapshot", "setFlagsFromString", "writeHeapSnapshot"]],
  vm: [["createContext", "runInContext", "runInNewContext", "runInThisContext", "Script"], { isContext: () => false }],
  worker_threads: [
    ["Worker", "receiveMessageOnPort", "moveMessagePortToContext", "postMessageToThread"],
    {
      isMainThread: true, isInternalThread: false, parentPort: null, threadId: 0, workerData: null, resourceLimits: {},
      SHARE_ENV: Symbol.for("nodejs.worker_threads.SHARE_ENV"),
      // Nothing can be sent to another thread, so marks about it mean nothing. undici sets them when it is loaded.
      markAsUncloneable() {}, markAsUntransferable() {}, isMarkedAsUntransferable: () => false,
      getEnvironmentData: (key) => environmentData.get(key),
      setEnvironmentData: (key, value) => void (value === undefined ? environmentData.delete(key) : environmentData.set(key, value)),
      MessageChannel: globalThis.MessageChannel, MessagePort: globalThis.MessagePort, BroadcastChannel: globalThis.BroadcastChannel,
    },
  ],
};

export function makeUnavailable(name) {
  const [names, others = {}] = MODULES[name];
  return { ...unavailable(name, names), ...others };
}
