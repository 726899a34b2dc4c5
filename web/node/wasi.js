// https://nodejs.org/api/wasi.html: options are checked as in Node, then the constructor refuses.
import { notImplemented } from "./http_common.js";
import { requireArray, requireBoolean, requireInteger, requireOneOf, requireOptions } from "./validate.js";

export class WASI {
  constructor(options = {}) {
    requireOptions(options, "options");
    const { version, args, env, preopens, returnOnExit } = options;
    if (version !== undefined) requireOneOf(version, "options.version", ["unstable", "preview1"]);
    if (args !== undefined) requireArray(args, "options.args");
    if (env !== undefined) requireOptions(env, "options.env");
    if (preopens !== undefined) requireOptions(preopens, "options.preopens");
    for (const name of ["stdin", "stdout", "stderr"]) {
      if (options[name] !== undefined) requireInteger(options[name], `options.${name}`, 0, 2147483647);
    }
    if (returnOnExit !== undefined) requireBoolean(returnOnExit, "options.returnOnExit");
    throw notImplemented("WASI");
  }

  finalizeBindings() {
    throw notImplemented("WASI.finalizeBindings");
  }

  start() {
    throw notImplemented("WASI.start");
  }

  initialize() {
    throw notImplemented("WASI.initialize");
  }

  getImportObject() {
    return {};
  }
}
