// https://w3c.github.io/performance-timeline/#the-performanceobserver-interface
import { DOMException } from "./dom/exception.js";
import { reportException } from "./dom/report.js";
import { defineInterface } from "./internal/platform.js";
import { illegalConstructor, requireArguments, toDictionary, toDOMString, toSequence } from "./internal/webidl.js";
import { chooseEntries, filterEntries, setEntryListener } from "./performance_entries.js";
import { startTimer } from "./timers.js";

const INTERNAL = Symbol("made by the platform");
const SUPPORTED = Object.freeze(["mark", "measure"]);

const observers = new Set(); // active observers
let isQueued = false; // the delivery task is queued

/** https://w3c.github.io/performance-timeline/#the-performanceobserverentrylist-interface */
export class PerformanceObserverEntryList {
  #entries;

  constructor(token = undefined, entries = []) {
    if (token !== INTERNAL) throw illegalConstructor();
    this.#entries = entries;
  }

  getEntries() {
    return chooseEntries(this.#entries);
  }

  getEntriesByType(type) {
    const entries = this.#entries;
    requireArguments(arguments.length, 1, "PerformanceObserverEntryList.getEntriesByType");
    return chooseEntries(entries, undefined, toDOMString(type));
  }

  getEntriesByName(name, type = undefined) {
    const entries = this.#entries;
    requireArguments(arguments.length, 1, "PerformanceObserverEntryList.getEntriesByName");
    return chooseEntries(entries, toDOMString(name), type === undefined ? undefined : toDOMString(type));
  }
}

defineInterface(PerformanceObserverEntryList);

let tell; // (observer, entry): queues the entry if it is observed
let deliver; // (observer): calls the callback with the queued entries

export class PerformanceObserver {
  #callback;
  #queue = [];
  #types = new Set();
  #mode = null; // "single" or "multiple", set by the first call of observe
  #isTold = false; // the count of dropped entries was delivered, which happens once

  constructor(callback) {
    requireArguments(arguments.length, 1, "PerformanceObserver constructor");
    if (typeof callback !== "function") throw new TypeError("PerformanceObserver constructor: the callback is not a function.");
    this.#callback = callback;
  }

  static get supportedEntryTypes() {
    return SUPPORTED;
  }

  /** https://w3c.github.io/performance-timeline/#observe-method */
  observe(options = undefined) {
    this.#types; // a brand check before anything else
    const { buffered, entryTypes, type } = toDictionary(options, "PerformanceObserver.observe");
    const types = entryTypes === undefined ? undefined : toSequence(entryTypes, "PerformanceObserver.observe", toDOMString);
    // Steps 3 and 4.
    if (types === undefined && type === undefined) throw new TypeError("PerformanceObserver.observe: neither entryTypes nor type is given.");
    if (types !== undefined && type !== undefined) throw new TypeError("PerformanceObserver.observe: entryTypes and type cannot be combined.");
    // Steps 5 and 6.
    const mode = types === undefined ? "single" : "multiple";
    this.#mode ??= mode;
    if (this.#mode !== mode) {
      throw new DOMException("An observer cannot switch between entryTypes and type.", "InvalidModificationError");
    }
    if (types === undefined) this.#observeOne(toDOMString(type), !!buffered);
    else this.#observeMany(types.filter((each) => SUPPORTED.includes(each)));
  }

  #observeMany(types) {
    if (types.length === 0) return;
    this.#types = new Set(types);
    observers.add(this);
  }

  #observeOne(type, buffered) {
    if (!SUPPORTED.includes(type)) return;
    this.#types.add(type);
    observers.add(this);
    if (!buffered) return;
    this.#queue.push(...filterEntries(undefined, type));
    queueDelivery();
  }

  disconnect() {
    this.#queue = [];
    this.#types = new Set();
    this.#mode = null;
    observers.delete(this);
  }

  takeRecords() {
    const records = this.#queue;
    this.#queue = [];
    return records;
  }

  static {
    tell = (observer, entry) => {
      if (observer.#types.has(entry.entryType)) observer.#queue.push(entry);
    };
    /** https://w3c.github.io/performance-timeline/#queue-the-performanceobserver-task, step 3.3 */
    deliver = (observer) => {
      if (observer.#queue.length === 0) return;
      const entries = new PerformanceObserverEntryList(INTERNAL, observer.takeRecords());
      const options = observer.#isTold ? {} : { droppedEntriesCount: 0 };
      observer.#isTold = true;
      try {
        observer.#callback.call(observer, entries, observer, options);
      } catch (error) {
        reportException(error);
      }
    };
  }
}

defineInterface(PerformanceObserver, { name: "PerformanceObserver", describe: () => ({}) });

/** https://w3c.github.io/performance-timeline/#queue-the-performanceobserver-task */
function queueDelivery() {
  if (isQueued) return;
  isQueued = true;
  startTimer(() => {
    isQueued = false;
    for (const observer of [...observers]) deliver(observer);
  }, 0);
}

setEntryListener((entry) => {
  for (const observer of observers) tell(observer, entry);
  if (observers.size > 0) queueDelivery();
});
