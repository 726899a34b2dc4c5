// What a worker exports, and the distinct ways in which that can be wrong.
import { globalListeners } from "../dom/global_scope.js";
import { eventHandlers } from "../internal/events.js";
import { ErrorCode } from "../internal/wire.gen.js";
import { isObjectClass } from "../objects/base.js";

// Handlers of Cloudflare that Atoll never calls: a worker with only these is refused.
const UNCALLED = ["trace"];

const known = () => ["fetch", ...eventHandlers(), ...UNCALLED];

/** An error the engine reports under `code` instead of as an exception of the top-level code. */
function refuse(code, message) {
  const error = new TypeError(message);
  error.code = code;
  return error;
}

/** https://developers.cloudflare.com/workers/runtime-apis/bindings/service-bindings/rpc/: a worker's entry point as a class. */
export class WorkerEntrypoint {
  constructor(ctx, env) {
    this.ctx = ctx;
    this.env = env;
  }
}

/** https://developers.cloudflare.com/workflows/build/workers-api/#workflowentrypoint: the code of a workflow (web/workflow). */
export class WorkflowEntrypoint {
  constructor(ctx, env) {
    this.ctx = ctx;
    this.env = env;
  }
}

/** A class whose instances run as steps. */
export function isWorkflowClass(target) {
  return typeof target === "function" && target.prototype instanceof WorkflowEntrypoint;
}

/** A class whose methods other workers may call: one that extends WorkerEntrypoint. */
export function isEntrypointClass(target) {
  return typeof target === "function" && target.prototype instanceof WorkerEntrypoint;
}

/** A class of handlers: each call gets an instance. */
export function isEntrypoint(target) {
  if (isEntrypointClass(target)) return true;
  return typeof target === "function" && target.fetch === undefined && typeof target.prototype?.fetch === "function";
}

const MOST_CLASSES = 100;
const CLASS_NAME = /^[A-Za-z_$][\w$]{0,255}$/;

/** The exported classes, which may be those of Durable Objects: they are reported with the handlers. */
function classNames(exports) {
  const found = Object.keys(exports).filter((name) => name !== "default" && CLASS_NAME.test(name) && isClass(exports[name]));
  return found.slice(0, MOST_CLASSES).map((name) => `class ${name}`);
}

function isClass(value) {
  return typeof value === "function" && typeof value.prototype === "object" && value.prototype !== null;
}

/** The handlers of a module worker: `{ target, names }`. */
export function moduleHandlers(exports) {
  const { target, names } = handlersOf(exports);
  return { target, names: [...names, ...classNames(exports)] };
}

function handlersOf(exports) {
  const hasMethods = Object.values(exports).some((value) => isEntrypointClass(value) || isObjectClass(value) || isWorkflowClass(value));
  if (!("default" in exports)) {
    if (hasMethods) return { target: {}, names: ["rpc"] };
    throw refuse(ErrorCode.NO_DEFAULT, "No default export: the main module must `export default { fetch(request, env, ctx) { … } }`.");
  }
  const target = exports.default;
  if ((typeof target !== "object" && typeof target !== "function") || target === null) {
    throw refuse(ErrorCode.NO_FETCH, `No fetch handler: the default export is ${target === null ? "null" : `a ${typeof target}`}, not an object with handlers.`);
  }
  if (target.fetch !== undefined && typeof target.fetch !== "function") {
    throw refuse(ErrorCode.FETCH_NOT_FUNCTION, `fetch is not a function: the default export's \`fetch\` is ${target.fetch === null ? "null" : `a ${typeof target.fetch}`}.`);
  }
  const handlers = isEntrypoint(target) ? target.prototype : target;
  const names = known().filter((name) => typeof handlers[name] === "function");
  if (hasMethods) names.push("rpc");
  if (names.length === 0) throw refuse(ErrorCode.NO_FETCH, "No fetch handler: the default export has no fetch function.");
  return { target, names };
}

/** The handlers of a service-worker script. */
export function scriptHandlers() {
  const names = known().filter((name) => globalListeners(name) > 0);
  if (names.length === 0) {
    throw refuse(
      ErrorCode.NO_FETCH,
      'No fetch handler: the script neither exports a default object nor calls addEventListener("fetch", …).',
    );
  }
  return { target: null, names };
}
