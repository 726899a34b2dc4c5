// The globals of Node, for workers whose compatibility date or flags ask for them.
// https://developers.cloudflare.com/workers/configuration/compatibility-flags/#nodejs-compatibility-flag
import { isOn } from "../worker/compatibility.js";
import { getBuiltIn } from "./modules.js";

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

export function exposeNodeGlobals(scope) {
  if (!isOn("nodejs_compat") && !isOn("nodejs_compat_v2")) return;
  Object.defineProperty(scope, "global", { value: scope, writable: true, enumerable: false, configurable: true });
  exposeLazily(scope, "process", () => getBuiltIn("process"));
  exposeLazily(scope, "Buffer", () => getBuiltIn("buffer").Buffer);
}
