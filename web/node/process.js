// https://nodejs.org/api/process.html: the parts of a process that a worker has, mainly its variables.
import { console } from "../console.js";
import { monotonicNow, timeOrigin } from "../internal/clock.js";
import { native } from "../internal/native.js";
import { reportException } from "../dom/report.js";
import { isOn } from "../worker/compatibility.js";
import { currentEnv } from "../worker/env.js";
import { codedError, requireFunction } from "./errors.js";
import { EventEmitter } from "./events.js";
import { getBuiltIn } from "./modules.js";

const { error, log } = console;

// The release of Node whose documentation these modules follow.
const release24 = isOn("nodejs_process_version_24");
export const version = release24 ? "v24.19.0" : "v22.19.0";
export const versions = Object.freeze({ node: version.slice(1) });
export const platform = "linux";
export const arch = "x64";
export const title = "atoll";
export const argv = ["atoll"];
export const argv0 = "atoll";
export const execArgv = [];
export const execPath = "";
export const pid = 1;
export const ppid = 0;
export const exitCode = undefined;
export const release = Object.freeze({ name: "node", lts: release24 ? "Krypton" : "Jod" });
export const features = Object.freeze({ inspector: false, tls: false, ipv6: true });
export const config = Object.freeze({ target_defaults: {}, variables: {} });

/** The worker's variables: text unchanged, other values as JSON. A copy, so changes stay in this isolate. */
export const env = {};
for (const [name, value] of isOn("nodejs_compat_populate_process_env") ? Object.entries(currentEnv()) : []) {
  if (typeof value === "string") env[name] = value;
  else if (typeof value !== "object" || value === null || Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype) {
    env[name] = JSON.stringify(value);
  }
}

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
  const [s, n] = [seconds - previous[0], nanoseconds - previous[1]];
  return n < 0 ? [s - 1, n + 1e9] : [s, n];
}

hrtime.bigint = () => BigInt(Math.floor(monotonicNow() * 1000)) * 1000n;

export function uptime() {
  return (native.now() - timeOrigin()) / 1000;
}

/** The folder of the worker's modules, as on Cloudflare. */
export function cwd() {
  return "/bundle";
}

export function chdir() {
  throw codedError(Error, "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM", "process.chdir() is not available in a worker");
}

export function umask() {
  return 0o22;
}

export function exit() {
  throw codedError(Error, "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM", "process.exit() is not available in a worker: return a Response");
}

export function abort() {
  return exit();
}

export function memoryUsage() {
  return { rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 };
}

memoryUsage.rss = () => 0;

export function emitWarning(warning, type = "Warning") {
  const name = typeof type === "string" ? type : (type?.type ?? "Warning");
  globalThis.console.warn(warning instanceof Error ? warning : `${name}: ${warning}`);
}

export const getBuiltinModule = getBuiltIn;

function makeStream(fd, write) {
  return { fd, isTTY: false, writable: true, columns: 80, write: (text) => (write(`${text}`.replace(/\n$/, "")), true) };
}

export const stdout = makeStream(1, log);
export const stderr = makeStream(2, error);
export const stdin = { fd: 0, isTTY: false, readable: false };

// The process is an emitter whose events never occur here.
const process = Object.assign(Object.create(EventEmitter.prototype), {
  abort, arch, argv, argv0, chdir, config, cwd, emitWarning, env, execArgv, execPath, exit, exitCode, features,
  getBuiltinModule, hrtime, memoryUsage, nextTick, pid, platform, ppid, release, stderr, stdin, stdout, title, umask, uptime,
  version, versions,
});
Object.defineProperty(process, Symbol.toStringTag, { value: "process", configurable: true });

export const on = (...args) => process.addListener(...args);
export const once = (event, listener) => EventEmitter.prototype.once.call(process, event, listener);
export const off = (event, listener) => process.removeListener(event, listener);
export const emit = (event, ...args) => EventEmitter.prototype.emit.call(process, event, ...args);

export default process;
