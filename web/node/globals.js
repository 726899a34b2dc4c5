// The globals of Node, for workers whose compatibility date asks for them: since this day they are there by default.
// https://developers.cloudflare.com/workers/configuration/compatibility-flags/#nodejs-compatibility-flag
import { getBuiltIn } from "./modules.js";

const SINCE = "2026-08-04";

// Made when they are first looked at, so that they cost nothing before.
function exposeLazily(scope, name, make) {
  const define = (value) =>
    Object.defineProperty(scope, name, { value, writable: true, enumerable: false, configurable: true });
  Object.defineProperty(scope, name, {
    get: () => {
      const value = make();
      define(value);
      return value;
    },
    set: define,
    enumerable: false,
    configurable: true,
  });
}

/** `date`: the compatibility date of the worker, `yyyy-mm-dd`. */
export function exposeNodeGlobals(scope, date) {
  if (!(date >= SINCE)) return;
  Object.defineProperty(scope, "global", { value: scope, writable: true, enumerable: false, configurable: true });
  exposeLazily(scope, "process", () => getBuiltIn("process"));
  exposeLazily(scope, "Buffer", () => getBuiltIn("buffer").Buffer);
}
