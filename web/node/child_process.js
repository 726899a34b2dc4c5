// https://nodejs.org/api/child_process.html: a worker starts no processes. Arguments are checked as in Node, then the call is refused.
import { invalidArgument, requireString } from "./errors.js";
import { EventEmitter } from "./events.js";
import { notImplemented } from "./http_common.js";
import { requireOptions } from "./validate.js";

const isNothing = (value) => value === undefined || value === null;

export class ChildProcess extends EventEmitter {
  constructor() {
    super();
    throw notImplemented("child_process.ChildProcess");
  }

  kill() {
    throw notImplemented("ChildProcess.prototype.kill");
  }

  send() {
    throw notImplemented("ChildProcess.prototype.send");
  }

  disconnect() {
    throw notImplemented("ChildProcess.prototype.disconnect");
  }

  ref() {}

  unref() {}

  [Symbol.dispose]() {}
}

export function _forkChild() {
  throw notImplemented("_forkChild");
}

export function exec(command, options = undefined, callback = undefined) {
  requireString(command, "command");
  if (typeof options !== "function") {
    if (!isNothing(options)) requireOptions(options, "options");
    if (!isNothing(callback) && typeof callback !== "function") throw invalidArgument("callback", "of type function", callback);
  }
  throw notImplemented("child_process.exec");
}

export function execFile() {
  throw notImplemented("child_process.execFile");
}

export function execFileSync() {
  throw notImplemented("child_process.execFileSync");
}

export function execSync() {
  throw notImplemented("child_process.execSync");
}

export function fork(path, args = undefined, options = undefined) {
  if (!isNothing(args) && typeof args !== "object") throw invalidArgument("args", "an instance of Array", args);
  if (!isNothing(options)) requireOptions(options, "options");
  throw notImplemented("child_process.fork");
}

export function spawn() {
  throw notImplemented("child_process.spawn");
}

export function spawnSync(command) {
  requireString(command, "file");
  throw notImplemented("child_process.spawnSync");
}
