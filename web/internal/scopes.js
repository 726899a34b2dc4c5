// Where replies of bindings and timers wait: in an isolate with Durable Objects they belong to a scope of an input gate
// (objects/gate.js). Without objects this costs one comparison.

let scopeOf = null;
let slotOf = null;

/** `find()` gives the scope that the running code belongs to, or undefined; `findSlot()` the slot of its object, or 0. */
export function setScopeOf(find, findSlot) {
  scopeOf = find;
  slotOf = findSlot;
}

export function currentSlot() {
  return slotOf === null ? 0 : slotOf();
}

export function currentScope() {
  return scopeOf === null ? undefined : scopeOf();
}

/** Runs code that another worker calls, as part of the scope; waits like `pass`. */
export function enter(scope, step) {
  if (scope === undefined) step();
  else scope.enter(step);
}

/** Runs `step` now, or once the critical section that is open within the scope has ended. */
export function pass(scope, step) {
  if (scope === undefined) step();
  else scope.pass(step);
}
