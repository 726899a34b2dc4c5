// https://w3c.github.io/performance-timeline/ and https://w3c.github.io/user-timing/
import { DOMException } from "./dom/exception.js";
import { structuredClone } from "./dom/clone.js";
import { monotonicNow } from "./internal/clock.js";
import { defineInterface } from "./internal/platform.js";
import { illegalConstructor, NO_OPTIONS, requireArguments, toDictionary, toDOMString } from "./internal/webidl.js";

const INTERNAL = Symbol("made by the platform");

let lastId = 100; // https://w3c.github.io/performance-timeline/#dfn-generate-an-id-for-a-performance-entry

/** https://w3c.github.io/performance-timeline/#dom-performanceentry */
export class PerformanceEntry {
  #id;
  #name;
  #entryType;
  #startTime;
  #duration;

  constructor(token = undefined, name = "", entryType = "", startTime = 0, duration = 0) {
    if (token !== INTERNAL) throw illegalConstructor();
    this.#id = lastId += 1;
    this.#name = name;
    this.#entryType = entryType;
    this.#startTime = startTime;
    this.#duration = duration;
  }

  get id() {
    return this.#id;
  }

  get name() {
    return this.#name;
  }

  get entryType() {
    return this.#entryType;
  }

  get startTime() {
    return this.#startTime;
  }

  get duration() {
    return this.#duration;
  }

  /** https://w3c.github.io/performance-timeline/#dom-performanceentry-navigationid: a worker has no navigation. */
  get navigationId() {
    this.#id; // a brand check
    return 0;
  }

  /** https://webidl.spec.whatwg.org/#default-tojson-steps */
  toJSON() {
    this.#id; // a brand check
    const { id, name, entryType, startTime, duration, navigationId } = this;
    return { id, name, entryType, startTime, duration, navigationId };
  }
}

defineInterface(PerformanceEntry);

function toTime(value, where) {
  const time = Number(value);
  if (!Number.isFinite(time)) throw new TypeError(`${where}: the time is not a finite number.`);
  if (time < 0) throw new TypeError(`${where}: the time is negative.`);
  return time;
}

function copyDetail(detail) {
  return detail === undefined || detail === null ? null : structuredClone(detail);
}

/** https://w3c.github.io/user-timing/#performancemark */
export class PerformanceMark extends PerformanceEntry {
  #detail;

  constructor(markName, markOptions = undefined) {
    requireArguments(arguments.length, 1, "PerformanceMark constructor");
    const name = toDOMString(markName);
    const { detail, startTime } = toDictionary(markOptions, "PerformanceMark constructor");
    super(INTERNAL, name, "mark", startTime === undefined ? monotonicNow() : toTime(startTime, "PerformanceMark constructor"), 0);
    this.#detail = copyDetail(detail);
  }

  get detail() {
    return this.#detail;
  }

  toJSON() {
    return { ...super.toJSON(), detail: this.#detail };
  }
}

defineInterface(PerformanceMark);

/** https://w3c.github.io/user-timing/#performancemeasure */
export class PerformanceMeasure extends PerformanceEntry {
  #detail;

  constructor(token = undefined, name = "", startTime = 0, duration = 0, detail = null) {
    if (token !== INTERNAL) throw illegalConstructor();
    super(INTERNAL, name, "measure", startTime, duration);
    this.#detail = detail;
  }

  get detail() {
    return this.#detail;
  }

  toJSON() {
    return { ...super.toJSON(), detail: this.#detail };
  }
}

defineInterface(PerformanceMeasure);

let entries = []; // of this isolate, in the order of creation
let listener = null; // set by performance_observer.js when a worker creates an observer

export function setEntryListener(listen) {
  listener = listen;
}

/** https://w3c.github.io/performance-timeline/#queue-a-performanceentry */
function queueEntry(entry) {
  entries.push(entry);
  listener?.(entry);
  return entry;
}

/** https://w3c.github.io/user-timing/#mark-method */
export function mark(name, options) {
  return queueEntry(new PerformanceMark(name, options));
}

// The attributes of PerformanceTiming. https://w3c.github.io/navigation-timing/#the-performancetiming-interface
const NAVIGATION = `connectEnd connectStart domComplete domContentLoadedEventEnd domContentLoadedEventStart domInteractive domLoading
  domainLookupEnd domainLookupStart fetchStart loadEventEnd loadEventStart navigationStart redirectEnd redirectStart requestStart
  responseEnd responseStart secureConnectionStart unloadEventEnd unloadEventStart`.split(/\s+/);

/** https://w3c.github.io/user-timing/#convert-a-mark-to-a-timestamp */
function toTimestamp(point) {
  if (typeof point === "number") return toTime(point, "Performance.measure");
  const name = toDOMString(point);
  // Step 1: attributes of a page's navigation, which a worker does not have.
  if (NAVIGATION.includes(name)) throw new TypeError(`Performance.measure: there is no ${name} in a worker.`);
  const found = entries.findLast((entry) => entry.entryType === "mark" && entry.name === name);
  if (found === undefined) throw new DOMException(`The mark '${name}' does not exist.`, "SyntaxError");
  return found.startTime;
}

function endOf({ start, duration, end }, endMark) {
  if (endMark !== undefined) return toTimestamp(endMark);
  if (end !== undefined) return toTimestamp(end);
  if (start !== undefined && duration !== undefined) return toTimestamp(start) + toTime(duration, "Performance.measure");
  return monotonicNow();
}

function startOf({ start, duration, end }, startMark) {
  if (startMark !== undefined) return toTimestamp(startMark);
  if (start !== undefined) return toTimestamp(start);
  if (duration !== undefined && end !== undefined) return toTimestamp(end) - toTime(duration, "Performance.measure");
  return 0;
}

/** https://w3c.github.io/user-timing/#measure-method */
export function measure(measureName, startOrOptions, endMark) {
  const name = toDOMString(measureName);
  const isOptions = typeof startOrOptions === "object"; // null is an empty dictionary too
  const options = (isOptions ? startOrOptions : null) ?? NO_OPTIONS;
  const given = ["start", "duration", "end", "detail"].some((key) => options[key] !== undefined);
  // Step 1.
  if (given) {
    if (endMark !== undefined) throw new TypeError("Performance.measure: options and an end mark cannot be combined.");
    if (options.start === undefined && options.end === undefined) throw new TypeError("Performance.measure: the options have neither start nor end.");
    if (options.start !== undefined && options.duration !== undefined && options.end !== undefined) {
      throw new TypeError("Performance.measure: the options have start, duration and end.");
    }
  }
  // Steps 2 and 3.
  const end = endOf(options, endMark === undefined ? undefined : toDOMString(endMark));
  const start = startOf(options, isOptions || startOrOptions === undefined ? undefined : toDOMString(startOrOptions));
  return queueEntry(new PerformanceMeasure(INTERNAL, name, start, end - start, copyDetail(options.detail)));
}

/** https://w3c.github.io/user-timing/#clearmarks-method and https://w3c.github.io/user-timing/#clearmeasures-method */
export function clear(entryType, name) {
  entries = entries.filter((entry) => entry.entryType !== entryType || (name !== undefined && entry.name !== toDOMString(name)));
}

/** https://w3c.github.io/performance-timeline/#dfn-filter-buffer-map-by-name-and-type */
export function filterEntries(name = undefined, type = undefined) {
  return chooseEntries(entries, name, type);
}

/** https://w3c.github.io/performance-timeline/#dfn-filter-buffer-by-name-and-type: by time, then in the order of creation. */
export function chooseEntries(list, name = undefined, type = undefined) {
  const chosen = list.filter(    (entry) => (name === undefined || entry.name === name) && (type === undefined || entry.entryType === type),
  );
  return chosen.sort((a, b) => a.startTime - b.startTime);
}
