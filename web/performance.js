// https://w3c.github.io/hr-time/#sec-performance
import { EventTarget } from "./dom/event_target.js";
import { monotonicNow, timeOrigin } from "./internal/clock.js";
import { defineInterface } from "./internal/platform.js";
import { illegalConstructor } from "./internal/webidl.js";

const INTERNAL = Symbol("made by the platform");

export class Performance extends EventTarget {
  constructor(token) {
    if (token !== INTERNAL) throw illegalConstructor();
    super();
  }

  /** https://w3c.github.io/hr-time/#now-method */
  now() {
    return monotonicNow();
  }

  /** https://w3c.github.io/hr-time/#timeorigin-attribute */
  get timeOrigin() {
    return timeOrigin();
  }

  /** https://w3c.github.io/hr-time/#tojson-method */
  toJSON() {
    return { timeOrigin: timeOrigin() };
  }
}

defineInterface(Performance, { describe: (performance) => performance.toJSON() });

export const performance = new Performance(INTERNAL);
