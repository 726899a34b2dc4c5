// https://html.spec.whatwg.org/multipage/structured-data.html#structured-cloning
import { DOMException } from "./exception.js";
import { native } from "../internal/native.js";
import { interfaceOf } from "../internal/platform.js";
import { requireArguments, toDictionary, toSequence } from "../internal/webidl.js";
import { isOn, whenFlagsAreSet } from "../worker/compatibility.js";

const MOST_SEARCHED = 10_000; // objects

// Transferable interfaces: `is(value)` recognizes an object, `begin(object)` returns its successor or throws if it cannot be
// transferred, `finish(object, successor)` moves the content.
const transferables = [];

export function defineTransferable(steps) {
  transferables.push(steps);
}

let isReference = () => false; // of another worker's objects; web/rpc sets it when a worker uses RPC

export function defineReference(is) {
  isReference = is;
}

function makeError(message) {
  return new DOMException(message, "DataCloneError");
}

// V8 calls this for each object that is neither plain nor built into the language. If it returns undefined, the object is an
// instance of a worker's class and is cloned as a plain object.
function cloneHost(object, successors) {
  const successor = successors?.get(object);
  if (successor !== undefined) return successor;
  const known = interfaceOf(object);
  if (known === undefined && isReference(object)) throw referenceError();
  if (known === undefined) return undefined;
  if (known.clone === undefined) throw makeError(`A ${known.name} could not be cloned.`);
  return known.clone(object);
}

/**
 * https://html.spec.whatwg.org/multipage/structured-data.html#structuredserialize, as bytes for another isolate. Platform objects
 * go through `describe(object)`, which returns their description for `deserialize` or throws.
 */
export function serialize(value, describe = refuseHost) {
  const describeHost = (object) => {
    if (interfaceOf(object) !== undefined) return describe(object);
    if (isReference(object)) throw referenceError();
    return undefined;
  };
  try {
    const [bytes, hosts] = native.serialize(value, makeError, describeHost);
    return { bytes, hosts };
  } catch (error) {
    throw explained(error, value);
  }
}

function referenceError() {
  return makeError("Remote RPC references can only be serialized for RPC.");
}

/** V8 refuses a stub, which is a proxy, with a text of its own. */
function explained(error, value) {
  const seen = new Set([value]);
  for (const item of seen) {
    if ((typeof item !== "object" && typeof item !== "function") || item === null) continue;
    if (isReference(item)) return referenceError();
    if (typeof item !== "object" || native.isProxy(item) || seen.size > MOST_SEARCHED) continue;
    for (const key of Object.keys(item)) {
      const { value: inside } = Object.getOwnPropertyDescriptor(item, key);
      seen.add(inside);
    }
  }
  return error;
}

/** The reverse of `serialize`. `hosts` are the recreated platform objects. */
export function deserialize(bytes, hosts = []) {
  return native.deserialize(bytes, hosts, makeError);
}

function refuseHost(object) {
  throw makeError(`A ${interfaceOf(object).name} could not be cloned.`);
}

/** https://html.spec.whatwg.org/multipage/structured-data.html#dom-structuredclone */
export function structuredClone(value, options = undefined) {
  requireArguments(arguments.length, 1, "structuredClone", "Value");
  const { transfer = [] } = toDictionary(options, "structuredClone");
  return cloneWithTransfer(value, toTransferList(transfer, "structuredClone")).value;
}

/** sequence<object> */
export function toTransferList(value, where) {
  return toSequence(value, where, (item) => {
    if ((typeof item === "object" && item !== null) || typeof item === "function") return item;
    throw new TypeError(`${where}: a value in the transfer list is not an object.`);
  });
}

function stepsOf(object) {
  if (typeof object !== "object" || object === null) return undefined;
  return transferables.find((steps) => steps.is(object));
}

let clonesErrors = true;
whenFlagsAreSet(() => {
  clonesErrors = isOn("enhanced_error_serialization");
});

let clonedErrors = null; // loads the module that completes errors

export function setClonedErrors(load) {
  clonedErrors = load;
}

const MOST_NESTED = 16; // errors in properties of errors, which may be a ring
let nested = 0;

/** V8 calls this for a value that may hold errors. A property of an error that cannot be cloned is left out. */
function restore(original, copy) {
  if (nested === MOST_NESTED) return;
  nested++;
  try {
    clonedErrors().restoreErrors(original, copy, (value) => {
      try {
        return structuredClone(value);
      } catch {
        return undefined;
      }
    });
  } finally {
    nested--;
  }
}

/**
 * https://html.spec.whatwg.org/multipage/structured-data.html#structuredserializewithtransfer and its reverse in one step.
 * Returns `{ value, moved }`: the clone, and the successors of the platform objects in the list.
 */
export function cloneWithTransfer(value, transfer) {
  const buffers = [];
  const successors = new Map();
  for (const item of transfer) {
    const steps = stepsOf(item);
    if (steps === undefined) buffers.push(item);
    else if (successors.has(item)) throw makeError("The transfer list contains an object twice.");
    else successors.set(item, steps.begin(item));
  }
  const host = successors.size === 0 ? cloneHost : (object) => cloneHost(object, successors);
  let clone;
  try {
    clone = native.structuredClone(value, buffers, makeError, host, clonesErrors ? restore : undefined);
  } catch (error) {
    throw explained(error, value);
  }
  for (const [item, successor] of successors) stepsOf(item).finish(item, successor);
  return { value: clone, moved: [...successors.values()] };
}
