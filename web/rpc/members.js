// What of an object another worker may use: methods and getters of the classes made for it, own properties of plain objects
// and functions, nothing else.
import { DurableObject } from "../objects/base.js";
import { WorkerEntrypoint } from "../worker/handlers.js";
import { noMember, noObject, notFunction } from "./errors.js";
import { isFetcher, PassedStub, useFetcher } from "./passes.js";
import { Placeholder } from "./placeholder.js";
import { handleOf, RpcTarget } from "./stubs.js";

const RESERVED = new Set(["constructor", "dup"]);
const RESERVED_OF_ENTRYPOINTS = new Set([
  ...RESERVED, "fetch", "connect", "alarm", "webSocketMessage", "webSocketClose", "webSocketError",
]);

function checkName(name, reserved) {
  if (reserved.has(name)) throw new TypeError(`'${name}' is a reserved method and cannot be called over RPC.`);
}

const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

/** A method or getter of the class, or of one it extends; neither of Object nor of the instance itself. */
function readOfClass(object, name) {
  if (Object.hasOwn(object, name)) throw noMember(name);
  for (let at = Object.getPrototypeOf(object); at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    if (Object.hasOwn(at, name)) return Reflect.get(at, name, object);
  }
  throw noMember(name);
}

function readOwn(object, name) {
  if (!Object.hasOwn(object, name)) throw noMember(name);
  return object[name];
}

/** Whether names can be looked up in an object, and how; undefined if not. */
function readerOf(object) {
  if (object instanceof RpcTarget) return readOfClass;
  if (typeof object === "function" || Array.isArray(object)) return readOwn;
  return Object.getPrototypeOf(object) === Object.prototype ? readOwn : undefined;
}

/**
 * Follows `path` from `root`: { holder, value }, or { cap, rest } if the way leads through a stub. `read(root, name)` reads the
 * first name.
 */
function follow(root, path, read) {
  let holder = undefined;
  let value = root;
  let reader = read;
  for (let i = 0; i < path.length; i++) {
    if (i > 0) {
      const cap = capOf(value);
      if (cap !== undefined) return { cap, rest: path.slice(i) };
      reader = isObject(value) && handleOf(value) === undefined ? readerOf(value) : undefined;
      if (reader === undefined) throw noMember(path[i - 1]);
      checkName(path[i], RESERVED);
    }
    holder = value;
    value = reader(value, path[i]);
  }
  return value instanceof Placeholder ? { cap: value.cap, rest: [] } : { holder, value };
}

/** The capability of a stub on the way; undefined for any other value. */
function capOf(value) {
  if (value instanceof Placeholder) return value.cap;
  const fetcher = value instanceof PassedStub ? value.stub : isFetcher(value) ? value : undefined;
  if (fetcher !== undefined) return { run: (path, args) => useFetcher(fetcher, path, args) };
  return handleOf(value)?.cap;
}

function use(found, path, args) {
  if (found.cap !== undefined) return found.cap.run(found.rest, args);
  if (args === null) return found.value;
  if (typeof found.value !== "function") throw notFunction(path);
  return Reflect.apply(found.value, found.holder, args);
}

/** Calls or reads (`args` is null) a member of an entry point's instance. */
export function useEntrypoint(instance, path, args) {
  checkName(path[0], RESERVED_OF_ENTRYPOINTS);
  const read = (object, name) => {
    if (Object.hasOwn(WorkerEntrypoint.prototype, name) || Object.hasOwn(DurableObject.prototype, name)) throw noMember(name);
    return readOfClass(object, name);
  };
  return use(follow(instance, path, read), path, args);
}

/** The same for an exported object of handlers: a function gets (argument, env, ctx). */
export function useHandlers(object, path, args, env, ctx) {
  checkName(path[0], RESERVED_OF_ENTRYPOINTS);
  const found = follow(object, path, (from, name) => {
    const value = from[name];
    if (value === undefined || (name in Object.prototype && !Object.hasOwn(from, name))) throw noMember(name);
    return value;
  });
  if (args === null || path.length > 1 || typeof found.value !== "function") return use(found, path, args);
  if (found.value.length > 3) {
    throw new TypeError(
      `Cannot call handler function "${path[0]}" over RPC because it has the wrong number of arguments. A simple function ` +
        "handler can only be called over RPC if it has exactly the arguments (arg, env, ctx), where only the first argument " +
        "comes from the client. To support multi-argument RPC functions, use class-based syntax (extending WorkerEntrypoint) instead.",
    );
  }
  if (args.length !== 1) {
    throw new TypeError(
      `Attempted to call RPC function "${path[0]}" with the wrong number of arguments. When calling a top-level handler function ` +
        "that is not declared as part of a class, you must always send exactly one argument. In order to support variable numbers " +
        "of arguments, the server must use class-based syntax (extending WorkerEntrypoint) instead.",
    );
  }
  return Reflect.apply(found.value, found.holder, [args[0], env, ctx]);
}

/** The same for what a stub refers to: an RpcTarget, a function, or the result of a call. */
export function useTarget(target, path, args) {
  if (!isObject(target)) throw noObject();
  if (path.length > 0) checkName(path[0], RESERVED);
  const found = follow(target, path, readerOf(target) ?? readOwn);
  if (path.length === 0 && found.cap === undefined && args !== null && typeof target !== "function") {
    throw new TypeError("The RPC receiver is not a function.");
  }
  return use(found, path, args);
}

/** The same for a value that has arrived here, whole. Its methods are stubs. */
export function useValue(value, path, args) {
  if (!isObject(value)) throw noObject();
  const handle = handleOf(value);
  if (handle !== undefined) return handle.ask(path, args).promise;
  let at = value;
  for (const [i, name] of path.entries()) {
    if (isFetcher(at)) return useFetcher(at, path.slice(i), args);
    const stub = i > 0 ? handleOf(at) : undefined;
    if (stub !== undefined) return stub.ask(path.slice(i), args).promise;
    if (!isObject(at)) throw noMember(path[i - 1]);
    at = readOwn(at, name);
  }
  if (args === null) return at;
  const method = handleOf(at);
  if (method === undefined) throw notFunction(path);
  return method.ask([], args).promise;
}
