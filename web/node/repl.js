// https://nodejs.org/api/repl.html: there is no prompt in a worker.
import { EventEmitter } from "./events.js";
import { notImplemented } from "./http_common.js";
import { builtInNames } from "./modules.js";

export class REPLServer extends EventEmitter {
  constructor() {
    super();
    throw notImplemented("REPLServer");
  }

  setupHistory() {
    throw notImplemented("REPLServer.prototype.setupHistory");
  }

  defineCommand() {
    throw notImplemented("REPLServer.prototype.defineCommand");
  }

  displayPrompt() {
    throw notImplemented("REPLServer.prototype.displayPrompt");
  }

  clearBufferedCommand() {
    throw notImplemented("REPLServer.prototype.clearBufferedCommand");
  }
}

export class Recoverable extends SyntaxError {
  constructor(error) {
    super();
    this.err = error;
  }
}

export function writer() {
  throw notImplemented("writer");
}

export function start() {
  throw notImplemented("start");
}

export const REPL_MODE_SLOPPY = Symbol("repl-sloppy");
export const REPL_MODE_STRICT = Symbol("repl-strict");
export const builtinModules = builtInNames().filter((name) => !name.startsWith("_"));
export { builtinModules as _builtinLibs };
