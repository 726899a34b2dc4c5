// Passes: how a stub of an object or an entry point travels to another worker (atoll/bindings/passes.py).
//
// A stub in a value becomes a text that says where it leads, with a MAC. Service bindings get theirs from Python. For objects and
// own entry points Python gives a key. The receiver makes a stub of the text, and Python checks the text whenever it is used.
import { isObjectStub, passOfObject } from "#bindings/durable_object/durable_object.js";
import { isService, passOfService } from "#bindings/service/service.js";
import { native } from "../internal/native.js";
import { notFunction, notSerializable } from "./errors.js";
import { EntrypointHandle, handleOf } from "./stubs.js";

/** A stub in a value that is being sent. */
export class PassedStub {
  constructor(pass, stub) {
    this.pass = pass;
    this.stub = stub;
  }
}

/** Whether a value is a stub of an object or of an entry point: it has fetch() and methods, and outlives the call it came with. */
export function isFetcher(value) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null || !native.isProxy(value)) return false;
  return isService(value) || isObjectStub(value) || handleOf(value) instanceof EntrypointHandle;
}

/** The pass of such a stub. */
export function passOf(fetcher) {
  const handle = handleOf(fetcher);
  const pass = handle !== undefined ? handle.pass : isService(fetcher) ? passOfService(fetcher) : passOfObject(fetcher);
  if (pass === undefined) throw notSerializable(fetcher.constructor.name);
  return pass;
}

/** Uses such a stub for a worker that was sent it. */
export function useFetcher(fetcher, path, args) {
  const value = path.reduce((at, name) => at[name], fetcher);
  if (args === null) return value;
  if (typeof value !== "function") throw notFunction(path);
  return value(...args);
}
