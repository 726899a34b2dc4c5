// https://tc39.es/ecma262/#sec-finalization-registry-constructor
//
// V8 calls finalizers after a garbage collection, between two turns, where no call is charged for them. So they are only queued
// then. The engine runs them when there is CPU budget for work that belongs to no call (engine/src/limits/allowance.h).
import { reportException } from "./dom/report.js";
import { native } from "./internal/native.js";

const { construct } = Reflect;

let first = null; // queue of { callback, held, next }; a linked list, which no worker can patch
let last = null;

function keep(callback, held) {
  const entry = { __proto__: null, callback, held, next: null };
  if (first === null) first = entry;
  else last.next = entry;
  last = entry;
  native.finalizersWait();
}

/** Called by the engine: runs finalizers until the budget is used up. */
export function finalize() {
  do {
    if (first === null) return;
    const { callback, held } = first;
    first = first.next;
    try {
      callback(held);
    } catch (error) {
      reportException(error);
    }
  } while (native.hasTime());
  if (first !== null) native.finalizersWait();
}

/** Called once, while the snapshot is made. */
export function tameFinalizers(scope) {
  const Original = scope.FinalizationRegistry;
  const value = new Proxy(Original, {
    construct(target, given, newTarget) {
      const [callback] = given;
      if (typeof callback !== "function") return construct(target, given, newTarget); // which throws
      return construct(target, [(held) => keep(callback, held)], newTarget);
    },
  });
  const property = { value, writable: true, enumerable: false, configurable: true };
  Object.defineProperty(Original.prototype, "constructor", property);
  Object.defineProperty(scope, "FinalizationRegistry", property);
}
