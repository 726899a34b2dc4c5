// Bodies from iterables. https://developers.cloudflare.com/workers/configuration/compatibility-flags/#fetch-iterable-type-support
import { isOn, whenFlagsAreSet } from "../worker/compatibility.js";

let takesIterables = true;
let keepsStrings = true; // an object that defines how it becomes a string is one
whenFlagsAreSet(() => {
  takesIterables = isOn("fetch_iterable_type_support");
  keepsStrings = isOn("fetch_iterable_type_support_override_adjustment");
});

const { toString: objectToString } = Object.prototype;
const { toString: arrayToString } = Array.prototype;

/** True for an object whose items, and not whose string, are the body. */
export function isIterableBody(object) {
  if (!takesIterables || typeof object !== "object") return false;
  if (typeof object[Symbol.asyncIterator] !== "function" && typeof object[Symbol.iterator] !== "function") return false;
  if (!keepsStrings) return true;
  const { toString } = object;
  return (toString === objectToString || toString === arrayToString) && object[Symbol.toPrimitive] === undefined;
}
