// https://nodejs.org/api/process.html: the parts of a process that a worker has, mainly its variables.
import { monotonicNow, timeOrigin } from "../internal/clock.js";
import { lazy } from "../internal/lazy.js";
import { native } from "../internal/native.js";
import { reportException } from "../dom/report.js";
import { isOn } from "../worker/compatibility.js";
import { cwd, setCwdSource } from "./cwd.js";
import { codedError, invalidArgument, invalidValue, outOfRange, requireFunction, requireString } from "./errors.js";
import { EventEmitter } from "./events.js";
import { getBuiltIn } from "./modules.js";
import { makeEnv } from "./process_env.js";
import { stderr, stdin, stdout } from "./process_streams.js";

// The release of Node whose documentation these modules follow.
const release24 = isOn("nodejs_process_version_24");
export const version = release24 ? "v24.19.0" : "v22.19.0";
export const versions = Object.freeze({ node: version.slice(1) });
export const platform = "linux";
export const arch = "x64";
export const argv = ["workerd"];
export const env = makeEnv();

/** Runs after the current code and before timers: a microtask. */
export function nextTick(callback, ...args) {
  requireFunction(callback, "callback");
  native.enqueueMicrotask(() => {
    try {
      callback(...args);
    } catch (error) {
      reportException(error);
    }
  });
}

export function hrtime(previous = undefined) {
  const now = monotonicNow() / 1000;
  const seconds = Math.floor(now);
  const nanoseconds = Math.floor((now - seconds) * 1e9);
  if (previous === undefined) return [seconds, nanoseconds];
  if (!Array.isArray(previous)) throw invalidArgument("time", "an instance of Array", previous);
  if (previous.length !== 2) throw outOfRange("time", 2, previous.length);
  const [s, n] = [seconds - previous[0], nanoseconds - previous[1]];
  return n < 0 ? [s - 1, n + 1e9] : [s, n];
}

hrtime.bigint = () => BigInt(Math.floor(monotonicNow() * 1000)) * 1000n;

function uptime() {
  return (native.now() - timeOrigin()) / 1000;
}

/** The folder lasts as long as the call, like its files. */
function chdir(directory) {
  requireString(directory, "directory");
  const { tree } = lazy("node/fs_open.js");
  tree().enter(directory);
  setCwdSource(() => tree().cwd);
}

const MOST_UINT32 = 4294967295;

/** Checks its argument as Node does and changes nothing. */
function umask(mask = undefined) {
  if (mask === undefined) return 0o22;
  if (typeof mask !== "number" && typeof mask !== "string") throw invalidArgument("mask", "one of type number or string", mask);
  const number = typeof mask === "number" ? mask : /^[0-7]+$/.test(mask) ? parseInt(mask, 8) : NaN;
  if (!Number.isInteger(number) || number < 0 || number > MOST_UINT32) {
    throw invalidValue("mask", mask, "must be a 32-bit unsigned integer or an octal string");
  }
  return 0o22;
}

function exit() {
  throw codedError(Error, "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM", "process.exit() is not available in a worker: return a Response");
}

function memoryUsage() {
  return { rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 };
}

memoryUsage.rss = () => 0;

function resourceUsage() {
  const names = `userCPUTime systemCPUTime maxRSS sharedMemorySize unsharedDataSize unsharedStackSize minorPageFault majorPageFault
    swappedOut fsRead fsWrite ipcSent ipcReceived signalsCount voluntaryContextSwitches involuntaryContextSwitches`;
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, 0]));
}

function toWarning(text, name, code, detail, constructor) {
  const warning = new Error(text);
  warning.name = name;
  if (code) warning.code = code;
  if (detail) warning.detail = detail;
  Error.captureStackTrace(warning, constructor);
  return warning;
}

/** https://nodejs.org/api/process.html#processemitwarningwarning-type-code-ctor */
export function emitWarning(warning, type = undefined, code = undefined, constructor = emitWarning) {
  let detail;
  if (typeof type === "object" && type !== null && !Array.isArray(type)) {
    if (typeof type.detail === "string") ({ detail } = type);
    ({ code, ctor: constructor = emitWarning } = type);
    type = type.type || "Warning";
  } else if (typeof type === "function") [type, code, constructor] = ["Warning", "", type];
  if (type !== undefined) requireString(type, "type");
  if (typeof code === "function") [code, constructor] = ["", code];
  else if (code !== undefined) requireString(code, "code");
  if (typeof warning === "string") warning = toWarning(warning, type || "Warning", code, detail, constructor);
  else if (!(warning instanceof Error)) throw invalidArgument("warning", "of type string or an instance of Error", warning);
  if (warning.name === "DeprecationWarning") {
    if (process.noDeprecation) return;
    if (process.throwDeprecation) {
      nextTick(() => {
        throw warning;
      });
      return;
    }
  }
  nextTick(() => {
    if (!process.emit("warning", warning)) globalThis.console.warn(`${warning.name}: ${warning.message}`);
  });
}

function loadEnvFile(path = ".env") {
  const content = lazy("node/fs.js").readFileSync(path, "utf8");
  Object.assign(env, lazy("node/parse_env.js").parseEnv(content));
}

// The user is root, who cannot become anyone else.
const becomeRoot = (name) => (id) => {
  if (typeof id !== "number" && typeof id !== "string") throw invalidArgument("id", "one of type number or string", id);
  if (id !== 0 && id !== "root") throw codedError(Error, "EPERM", `${name} EPERM, Operation not permitted`);
};

const refuseUser = (name) => () => {
  throw codedError(Error, "EPERM", `${name} EPERM, Operation not permitted`);
};

const refuse = (name) => () => {
  throw codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", `The process.${name} method is not implemented`);
};

const nothing = () => {};

// Events of the global object that Node has on the process.
const REJECTIONS = { unhandledRejection: "unhandledrejection", rejectionHandled: "rejectionhandled" };
const watched = new Set();

function watch(event) {
  const type = REJECTIONS[event];
  if (type === undefined || watched.has(event)) return;
  watched.add(event);
  globalThis.addEventListener(type, (rejection) => {
    if (process.listenerCount(event) === 0) return;
    rejection.preventDefault();
    if (event === "unhandledRejection") process.emit(event, rejection.reason, rejection.promise);
    else process.emit(event, rejection.promise);
  });
}

class Process extends EventEmitter {}

for (const name of ["addListener", "on", "once", "prependListener", "prependOnceListener"]) {
  Object.defineProperty(Process.prototype, name, {
    value(event, listener) {
      watch(event);
      return EventEmitter.prototype[name].call(this, event, listener);
    },
    writable: true,
    configurable: true,
  });
}

Object.defineProperty(Process.prototype, Symbol.toStringTag, { value: "process", configurable: true });

const process = Object.assign(Object.create(Process.prototype), {
  _events: { __proto__: null },
  _eventsCount: 0,
  _maxListeners: undefined,
  _exiting: false,
  _preload_modules: [],
  _getActiveHandles: () => [],
  _getActiveRequests: () => [],
  _fatalException: () => false,
  _rawDebug: (...args) => globalThis.console.error(...args),
  abort: exit,
  allowedNodeEnvironmentFlags: new Set(),
  arch,
  argv,
  argv0: "workerd",
  assert: (value, message) => getBuiltIn("assert")(value, message),
  availableMemory: () => 0,
  channel: null,
  chdir,
  config: Object.freeze({ target_defaults: {}, variables: {} }),
  connected: false,
  constrainedMemory: () => 0,
  cwd,
  debugPort: 0,
  domain: null,
  emitWarning,
  env,
  execArgv: [],
  execPath: "",
  exit,
  exitCode: undefined,
  features: Object.freeze({
    inspector: false, debug: false, uv: false, ipv6: true, tls_alpn: true, tls_sni: true, tls_ocsp: false, tls: true,
    openssl_is_boringssl: false, cached_builtins: true, require_module: false, quic: false, typescript: false,
  }),
  finalization: { register: nothing, registerBeforeExit: nothing, unregister: nothing },
  getBuiltinModule(name) {
    requireString(name, "id");
    return getBuiltIn(name);
  },
  getSourceMapsSupport: () => Object.freeze({ __proto__: null, enabled: false, nodeModules: false, generatedCode: false }),
  getegid: () => 0,
  geteuid: () => 0,
  getgid: () => 0,
  getgroups: () => [0],
  getuid: () => 0,
  hrtime,
  initgroups: refuseUser("initgroups"),
  loadEnvFile,
  memoryUsage,
  moduleLoadList: [],
  nextTick,
  noDeprecation: false,
  openStdin: () => stdin,
  permission: { has: () => false },
  pid: 1,
  platform,
  ppid: 0,
  reallyExit: exit,
  release: Object.freeze({ name: "node", lts: release24 ? "Krypton" : "Jod" }),
  report: {
    compact: false, directory: "", filename: "", reportOnFatalError: false, reportOnSignal: false, reportOnUncaughtException: false,
    excludeEnv: false, excludeNetwork: false, signal: "SIGUSR2", getReport: () => ({}), writeReport: () => "",
  },
  resourceUsage,
  send: () => false,
  setegid: becomeRoot("setegid"),
  seteuid: becomeRoot("seteuid"),
  setgid: becomeRoot("setgid"),
  setgroups: refuseUser("setgroups"),
  setuid: becomeRoot("setuid"),
  sourceMapsEnabled: false,
  stderr,
  stdin,
  stdout,
  throwDeprecation: false,
  title: "workerd",
  traceDeprecation: false,
  umask,
  uptime,
  version,
  versions,
});

for (const name of ["_channel", "_disconnect", "_handleQueue", "_pendingMessage", "_send"]) process[name] = undefined;
for (const name of [
  "_debugEnd", "_debugProcess", "_startProfilerIdleNotifier", "_stopProfilerIdleNotifier", "_tickCallback", "ref", "setSourceMapsEnabled",
  "unref",
]) {
  process[name] = () => {};
}
for (const name of [
  "_kill", "_linkedBinding", "binding", "cpuUsage", "dlopen", "execve", "getActiveResourcesInfo", "hasUncaughtExceptionCaptureCallback",
  "kill", "setUncaughtExceptionCaptureCallback", "threadCpuUsage",
]) {
  process[name] = refuse(name);
}

export { cwd, process, stderr, stdin, stdout };
export default process;
