// https://tc39.es/ecma262/#sec-finalization-registry-constructor
//
// V8 calls finalizers when it has collected garbage, between two turns: nobody's call is charged for them. So they are only
// kept then, and the engine has them called when there is time for what belongs to no call (engine/src/allowance.h).
import { reportException } from "./dom/report.js";
import { native } from "./internal/native.js";

const { construct } = Reflect;

let first = null; // { callback, held, next } of those that are to be called; a list of our own, which no worker can touch
let last = null;

function keep(callback, held) {
  const entry = { __proto__: null, callback, held, next: null };
  if (first === null) first = entry;
  else last.next = entry;
  last = entry;
  native.finalizersWait();
}

/** Called by the engine: calls finalizers for as long as there is time. */
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
