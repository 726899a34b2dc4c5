// Node's globals, for workers whose compatibility date or flags enable them.
// https://developers.cloudflare.com/workers/configuration/compatibility-flags/#nodejs-compatibility-flag
import { native } from "../internal/native.js";
import { hasFlag, isOn } from "../worker/compatibility.js";
import { getBuiltIn } from "./modules.js";

/** Called once, while the snapshot is made. */
export function exposeNodeGlobals(scope) {
  Object.defineProperty(scope, "global", { value: scope, writable: true, enumerable: false, configurable: true });
  native.defineLazyGlobal("process", () => getBuiltIn("process"));
  native.defineLazyGlobal("Buffer", () => getBuiltIn("buffer").Buffer);
}

/** Called when an isolate gets its worker: removes the globals unless they are enabled. */
export function chooseNodeGlobals(scope) {
  if (isOn("nodejs_compat") || (isOn("nodejs_compat_v2") && !hasFlag("no_nodejs_compat"))) return;
  delete scope.global;
  delete scope.process;
  delete scope.Buffer;
}
