// https://w3c.github.io/hr-time/#sec-performance
import { EventTarget } from "./dom/event_target.js";
import { monotonicNow, timeOrigin } from "./internal/clock.js";
import { defineInterface } from "./internal/platform.js";
import { illegalConstructor, requireArguments, toDOMString } from "./internal/webidl.js";
import { clear, filterEntries, mark, measure } from "./performance_entries.js";

const INTERNAL = Symbol("made by the platform");

export class Performance extends EventTarget {
  #brand; // looked at by each member, so that it fails on other objects

  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
    super();
  }

  /** https://w3c.github.io/hr-time/#now-method */
  now() {
    this.#brand;
    return monotonicNow();
  }

  /** https://w3c.github.io/hr-time/#timeorigin-attribute */
  get timeOrigin() {
    this.#brand;
    return timeOrigin();
  }

  /** https://w3c.github.io/user-timing/#mark-method */
  mark(markName, markOptions = undefined) {
    this.#brand;
    requireArguments(arguments.length, 1, "Performance.mark");
    return mark(markName, markOptions);
  }

  /** https://w3c.github.io/user-timing/#measure-method */
  measure(measureName, startOrMeasureOptions = undefined, endMark = undefined) {
    this.#brand;
    requireArguments(arguments.length, 1, "Performance.measure");
    return measure(measureName, startOrMeasureOptions, endMark);
  }

  clearMarks(markName = undefined) {
    this.#brand;
    clear("mark", markName);
  }

  clearMeasures(measureName = undefined) {
    this.#brand;
    clear("measure", measureName);
  }

  /** https://w3c.github.io/performance-timeline/#getentries-method */
  getEntries() {
    this.#brand;
    return filterEntries();
  }

  getEntriesByType(type) {
    this.#brand;
    requireArguments(arguments.length, 1, "Performance.getEntriesByType");
    return filterEntries(undefined, toDOMString(type));
  }

  getEntriesByName(name, type = undefined) {
    this.#brand;
    requireArguments(arguments.length, 1, "Performance.getEntriesByName");
    return filterEntries(toDOMString(name), type === undefined ? undefined : toDOMString(type));
  }

  /** https://w3c.github.io/hr-time/#tojson-method */
  toJSON() {
    this.#brand;
    return { timeOrigin: timeOrigin() };
  }
}

defineInterface(Performance, { name: "Performance", describe: (performance) => performance.toJSON() });

export const performance = new Performance(INTERNAL);
