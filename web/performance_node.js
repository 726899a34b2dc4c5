// What `performance` has from Node and from Resource Timing: a worker has no such measures, so everything is empty or 0.
import { PerformanceEntry } from "./performance_entries.js";
import { defineInterface } from "./internal/platform.js";
import { illegalConstructor } from "./internal/webidl.js";

const TEXTS = ["initiatorType", "nextHopProtocol"];
const NUMBERS = [
  "workerStart", "redirectStart", "redirectEnd", "fetchStart", "domainLookupStart", "domainLookupEnd", "connectStart", "connectEnd",
  "secureConnectionStart", "requestStart", "responseStart", "responseEnd", "transferSize", "encodedBodySize", "decodedBodySize", "responseStatus",
];

/** https://w3c.github.io/resource-timing/#dom-performanceresourcetiming: there are none. */
export class PerformanceResourceTiming extends PerformanceEntry {
  constructor() {
    throw illegalConstructor();
  }
}

for (const name of [...TEXTS, ...NUMBERS]) {
  const get = () => (TEXTS.includes(name) ? "" : 0);
  Object.defineProperty(PerformanceResourceTiming.prototype, name, { get, enumerable: true, configurable: true });
}

defineInterface(PerformanceResourceTiming);

class PerformanceNodeTiming {
  nodeStart = 0;
  v8Start = 0;
  bootstrapComplete = 0;
  environment = 0;
  loopStart = 0;
  loopExit = 0;
  idleTime = 0;
  uvMetricsInfo = { loopCount: 0, events: 0, eventsWaiting: 0 };
  name = "node";
  entryType = "node";
  startTime = 0;
  duration = 0;

  toJSON() {
    return { ...this };
  }
}

class EventCounts {
  size = 0;

  get() {}

  has() {
    return false;
  }

  entries() {
    return [].values();
  }

  keys() {
    return [].values();
  }

  values() {
    return [].values();
  }

  forEach() {}

  [Symbol.iterator]() {
    return [].values();
  }
}

export const nodeTiming = new PerformanceNodeTiming();
export const eventCounts = new EventCounts();
