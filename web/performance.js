// https://w3c.github.io/hr-time/#sec-performance
import { EventTarget } from "./dom/event_target.js";
import { monotonicNow, timeOrigin } from "./internal/clock.js";
import { lazy } from "./internal/lazy.js";
import { defineInterface } from "./internal/platform.js";
import { illegalConstructor, requireArguments, toDOMString, toUnsigned } from "./internal/webidl.js";

const INTERNAL = Symbol("made by the platform");

const entries = () => lazy("performance_entries.js");

export class Performance extends EventTarget {
  #brand; // read by each member as a brand check

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
    return entries().mark(markName, markOptions);
  }

  /** https://w3c.github.io/user-timing/#measure-method */
  measure(measureName, startOrMeasureOptions = undefined, endMark = undefined) {
    this.#brand;
    requireArguments(arguments.length, 1, "Performance.measure");
    return entries().measure(measureName, startOrMeasureOptions, endMark);
  }

  clearMarks(markName = undefined) {
    this.#brand;
    entries().clear("mark", markName);
  }

  clearMeasures(measureName = undefined) {
    this.#brand;
    entries().clear("measure", measureName);
  }

  /** https://w3c.github.io/resource-timing/#extensions-performance-interface: a worker has no resource entries. */
  clearResourceTimings() {
    this.#brand;
  }

  setResourceTimingBufferSize(maxSize) {
    this.#brand;
    requireArguments(arguments.length, 1, "Performance.setResourceTimingBufferSize");
    toUnsigned(maxSize, 32);
  }

  // Members of Node, which Cloudflare has too: a worker learns nothing about its event loop, so all numbers are 0.
  // https://nodejs.org/api/perf_hooks.html#class-performance
  get eventCounts() {
    this.#brand;
    return lazy("performance_node.js").eventCounts;
  }

  get nodeTiming() {
    this.#brand;
    return lazy("performance_node.js").nodeTiming;
  }

  eventLoopUtilization() {
    this.#brand;
    return { idle: 0, active: 0, utilization: 0 };
  }

  markResourceTiming() {
    this.#brand;
  }

  timerify(fn) {
    this.#brand;
    return fn;
  }

  /** https://w3c.github.io/performance-timeline/#getentries-method */
  getEntries() {
    this.#brand;
    return entries().filterEntries();
  }

  getEntriesByType(type) {
    this.#brand;
    requireArguments(arguments.length, 1, "Performance.getEntriesByType");
    return entries().filterEntries(undefined, toDOMString(type));
  }

  getEntriesByName(name, type = undefined) {
    this.#brand;
    requireArguments(arguments.length, 1, "Performance.getEntriesByName");
    return entries().filterEntries(toDOMString(name), type === undefined ? undefined : toDOMString(type));
  }

  /** https://w3c.github.io/hr-time/#tojson-method */
  toJSON() {
    this.#brand;
    return { timeOrigin: timeOrigin() };
  }
}

defineInterface(Performance, { name: "Performance", describe: (performance) => performance.toJSON() });

export const performance = new Performance(INTERNAL);
