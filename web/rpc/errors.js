// Errors of RPC, with the texts of workerd: programs compare them.
import { DOMException } from "../dom/exception.js";

export function noMember(name) {
  return new TypeError(`The RPC receiver does not implement the method "${name}".`);
}

export function notFunction(path) {
  return new TypeError(`"${path.join(".")}" is not a function.`);
}

export function noObject() {
  return new TypeError("Can't pipeline on RPC that did not return an object.");
}

export function tooDeep(most) {
  return new TypeError(`RPC calls and properties can be pipelined ${most} levels deep at most.`);
}

export function stubDisposed() {
  return new Error("RPC stub used after being disposed.");
}

export function promiseDisposed() {
  return new Error("RPC promise used after being disposed.");
}

export function wrongContext() {
  return new Error(
    "Cannot perform I/O on behalf of a different request. I/O objects (such as streams, request/response bodies, and others) " +
      "created in the context of one request handler cannot be accessed from a different request's handler. " +
      "This is a limitation of Cloudflare Workers which allows us to improve overall performance.",
  );
}

/** A DataCloneError. */
export function cloneError(message) {
  return new DOMException(message, "DataCloneError");
}

export function notSerializable(type) {
  return cloneError(`Could not serialize object of type "${type}". This type does not support serialization.`);
}
