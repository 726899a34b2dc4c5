// Errors in a structured clone: V8 copies their message, stack and cause. This adds their own properties, and the name and the
// errors of an AggregateError, as Cloudflare does with the flag `enhanced_error_serialization`.
import { native } from "../internal/native.js";

const KEPT = ["message", "stack", "cause"]; // V8 copies these
const { hasOwn } = Object;

/** `original` and `copy` have the same shape: walks both. `clone(value)` copies a property of an error. */
export function restoreErrors(original, copy, clone) {
  const seen = new Set();
  const open = [[original, copy]];
  while (open.length > 0) {
    const [from, to] = open.pop();
    if (typeof from !== "object" || from === null || typeof to !== "object" || to === null) continue;
    if (seen.has(from) || native.isProxy(from)) continue;
    seen.add(from);
    if (from instanceof Error && to instanceof Error) restore(from, to, clone);
    else if (from instanceof Map && to instanceof Map) pairUp([...from].flat(), [...to].flat(), open);
    else if (from instanceof Set && to instanceof Set) pairUp([...from], [...to], open);
    else if (!ArrayBuffer.isView(from)) for (const key of Object.keys(to)) open.push([valueOf(from, key), to[key]]);
  }
}

function pairUp(some, others, open) {
  for (let i = 0; i < some.length; i++) open.push([some[i], others[i]]);
}

/** A property without running a getter: what it returned when V8 read it is in the copy. */
function valueOf(object, key) {
  return Object.getOwnPropertyDescriptor(object, key)?.value;
}

function define(to, key, value) {
  Object.defineProperty(to, key, { value, writable: true, enumerable: true, configurable: true });
}

function restore(from, to, clone) {
  if (from instanceof AggregateError && hasOwn(from, "errors")) {
    Object.setPrototypeOf(to, AggregateError.prototype);
    Object.defineProperty(to, "errors", { value: clone(from.errors), writable: true, configurable: true });
  }
  for (const key of Object.keys(from)) {
    if (KEPT.includes(key)) continue;
    const { value } = Object.getOwnPropertyDescriptor(from, key);
    if (value !== undefined) define(to, key, clone(value));
  }
  // A name that is not enumerable, as Node's errors have it.
  if (hasOwn(from, "name") && !hasOwn(to, "name") && typeof from.name === "string") define(to, "name", from.name);
  if (from.cause !== undefined && from.cause !== null && typeof from.cause === "object" && hasOwn(from, "cause")) {
    Object.defineProperty(to, "cause", { value: clone(from.cause), writable: true, configurable: true });
  }
}
