// https://html.spec.whatwg.org/multipage/structured-data.html#structured-cloning
import { DOMException } from "./exception.js";
import { native } from "../internal/native.js";
import { interfaceOf } from "../internal/platform.js";
import { requireArguments, toDictionary, toSequence } from "../internal/webidl.js";

function makeError(message) {
  return new DOMException(message, "DataCloneError");
}

// V8 asks this of each object that is neither plain nor of the language; undefined says it is a worker's own class, which is
// cloned as a plain object.
function cloneHost(object) {
  const known = interfaceOf(object);
  if (known === undefined) return undefined;
  if (known.clone === undefined) throw makeError(`A ${known.name} could not be cloned.`);
  return known.clone(object);
}

/** https://html.spec.whatwg.org/multipage/structured-data.html#dom-structuredclone */
export function structuredClone(value, options = undefined) {
  requireArguments(arguments.length, 1, "structuredClone");
  const { transfer = [] } = toDictionary(options, "structuredClone");
  return native.structuredClone(value, toSequence(transfer, "structuredClone"), makeError, cloneHost);
}
