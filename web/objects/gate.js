// The input gate of a Durable Object: while a critical section is open, nothing but that section goes on.
// https://developers.cloudflare.com/durable-objects/reference/in-memory-state/ and blockConcurrencyWhile() of
// https://developers.cloudflare.com/durable-objects/api/state/
//
// Storage answers synchronously, so only blockConcurrencyWhile(), transaction() and the constructor close the gate. A scope is the
// object as a whole or one critical section. While a section is open within a scope, the rest of the scope waits in line: events,
// replies of bindings, timers and further sections, first come first served. Sections that a section opens are its children and
// do not wait for it.
import { getStore, isolated, setStore } from "../internal/async_context.js";
import { native } from "../internal/native.js";

const MAX_DEPTH = 64;
const SECTION = Symbol("critical section"); // the key of the section that code runs in

class Scope {
  constructor(gate, parent) {
    this.gate = gate;
    this.parent = parent; // null for the object as a whole
    this.depth = parent === null ? 0 : parent.depth + 1;
    this.child = null; // the open section within this scope
    this.line = []; // functions to run once it is closed
    this.isOpen = true;
  }

  get isBlocked() {
    return this.child !== null || this.line.length > 0;
  }

  /** Runs `step` as soon as no section is open within this scope. */
  pass(step) {
    if (this.gate.isBroken) return;
    if (!this.isOpen) {
      this.parent.pass(step);
      return;
    }
    if (!this.isBlocked) {
      step();
      return;
    }
    // It runs when other code ends a section, and must still be charged to its own call.
    const context = native.getAsyncContext();
    this.line.push(() =>
      isolated(() => {
        native.setAsyncContext(context);
        step();
      }),
    );
  }

  /** The same for code that another worker calls: it runs as part of this scope. */
  enter(step) {
    if (!this.isOpen) this.parent.enter(step);
    else if (this.parent === null) this.pass(step);
    else {
      this.pass(() =>
        isolated(() => {
          setStore(SECTION, this);
          step();
        }),
      );
    }
  }

  drain() {
    while (this.child === null && this.line.length > 0 && !this.gate.isBroken) this.line.shift()();
  }
}

export class InputGate {
  constructor() {
    this.isBroken = false;
    this.root = new Scope(this, null);
  }

  /** The scope that the running code belongs to. */
  scope() {
    const section = getStore(SECTION);
    return section !== undefined && section.gate === this && section.isOpen ? section : this.root;
  }

  /** Runs an event when the gate is open; returns a promise of its result. */
  deliver(run) {
    if (!this.root.isBlocked) return run();
    return new Promise((resolve, reject) => {
      this.root.pass(() => {
        try {
          resolve(run());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  /** Runs `body` as a critical section. `settle(failure, value)` is called at its end, while the gate is still closed. */
  section(body, settle) {
    const parent = this.scope();
    if (parent.depth >= MAX_DEPTH) throw new Error("blockConcurrencyWhile() calls are nested too deeply.");
    parent.pass(() => this.#open(parent, body, settle));
  }

  #open(parent, body, settle) {
    const section = new Scope(this, parent);
    parent.child = section;
    const end = (failure, value) => {
      section.isOpen = false;
      settle(failure, value);
      if (this.isBroken) return;
      parent.child = null;
      for (const step of section.line) parent.line.unshift(step);
      parent.drain();
    };
    isolated(() => {
      setStore(SECTION, section);
      new Promise((resolve) => resolve(body())).then(
        (value) => end(null, value),
        (error) => end({ error }),
      );
    });
  }

  /** The object is gone: nothing in line runs any more. */
  break() {
    this.isBroken = true;
    this.root.line = [];
  }
}
