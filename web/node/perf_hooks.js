// https://nodejs.org/api/perf_hooks.html: the part that the web has too.
import { Performance, performance } from "../performance.js";
import { notImplemented } from "./http_common.js";

export { Performance, performance };
export const {
  PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver, PerformanceObserverEntryList, PerformanceResourceTiming,
} = globalThis;

export const constants = Object.freeze({
  NODE_PERFORMANCE_GC_MAJOR: 4,
  NODE_PERFORMANCE_GC_MINOR: 1,
  NODE_PERFORMANCE_GC_INCREMENTAL: 8,
  NODE_PERFORMANCE_GC_WEAKCB: 16,
  NODE_PERFORMANCE_GC_FLAGS_NO: 0,
  NODE_PERFORMANCE_GC_FLAGS_CONSTRUCT_RETAINED: 2,
  NODE_PERFORMANCE_GC_FLAGS_FORCED: 4,
  NODE_PERFORMANCE_GC_FLAGS_SYNCHRONOUS_PHANTOM_PROCESSING: 8,
  NODE_PERFORMANCE_GC_FLAGS_ALL_AVAILABLE_GARBAGE: 16,
  NODE_PERFORMANCE_GC_FLAGS_ALL_EXTERNAL_MEMORY: 32,
  NODE_PERFORMANCE_GC_FLAGS_SCHEDULE_IDLE: 64,
});

export function createHistogram() {
  throw notImplemented("createHistogram");
}

export function monitorEventLoopDelay() {
  throw notImplemented("monitorEventLoopDelay");
}

export function eventLoopUtilization() {
  return { idle: 0, active: 0, utilization: 0 };
}

export function timerify(fn) {
  return fn;
}
