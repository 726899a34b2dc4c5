// Timers, clocks and the console

declare function setTimeout(callback: (...args: any[]) => unknown, delay?: number): number;
declare function setTimeout<Args extends any[]>(callback: (...args: Args) => unknown, delay: number, ...args: Args): number;
declare function clearTimeout(id: number | null | undefined): void;
declare function setInterval(callback: (...args: any[]) => unknown, delay?: number): number;
declare function setInterval<Args extends any[]>(callback: (...args: Args) => unknown, delay: number, ...args: Args): number;
declare function clearInterval(id: number | null | undefined): void;
declare function setImmediate(callback: (...args: any[]) => unknown): number;
declare function setImmediate<Args extends any[]>(callback: (...args: Args) => unknown, ...args: Args): number;
declare function clearImmediate(id: number | null | undefined): void;
declare function queueMicrotask(callback: () => void): void;

declare class Scheduler {
  private constructor();
  wait(milliseconds: number, options?: { signal?: AbortSignal }): Promise<void>;
}
declare var scheduler: Scheduler;

// https://w3c.github.io/hr-time/, https://w3c.github.io/performance-timeline/, https://w3c.github.io/user-timing/

interface PerformanceMarkOptions {
  detail?: any;
  startTime?: number;
}

interface PerformanceMeasureOptions {
  detail?: any;
  start?: number | string;
  end?: number | string;
  duration?: number;
}

declare class PerformanceEntry {
  constructor(...args: never);
  readonly name: string;
  readonly entryType: string;
  readonly startTime: number;
  readonly duration: number;
  readonly id: number;
  readonly navigationId: number;
  toJSON(): any;
}

declare class PerformanceMark extends PerformanceEntry {
  constructor(name: string, options?: PerformanceMarkOptions);
  readonly detail: any;
  toJSON(): any;
}

declare class PerformanceMeasure extends PerformanceEntry {
  constructor(...args: never);
  readonly detail: any;
  toJSON(): any;
}

/** There are none. */
declare class PerformanceResourceTiming extends PerformanceEntry {
  private constructor();
  readonly initiatorType: string;
  readonly nextHopProtocol: string;
  readonly workerStart: number;
  readonly redirectStart: number;
  readonly redirectEnd: number;
  readonly fetchStart: number;
  readonly domainLookupStart: number;
  readonly domainLookupEnd: number;
  readonly connectStart: number;
  readonly connectEnd: number;
  readonly secureConnectionStart: number;
  readonly requestStart: number;
  readonly responseStart: number;
  readonly responseEnd: number;
  readonly transferSize: number;
  readonly encodedBodySize: number;
  readonly decodedBodySize: number;
  readonly responseStatus: number;
}

/** `now()` and `Date.now()` stand still while code runs, and go on when it waits for something. */
declare class Performance extends EventTarget {
  private constructor();
  readonly timeOrigin: number;
  now(): number;
  mark(name: string, options?: PerformanceMarkOptions): PerformanceMark;
  measure(name: string, start?: string | PerformanceMeasureOptions, end?: string): PerformanceMeasure;
  clearMarks(name?: string): void;
  clearMeasures(name?: string): void;
  clearResourceTimings(): void;
  setResourceTimingBufferSize(maxSize: number): void;
  // Node's members, whose numbers are 0.
  readonly eventCounts: ReadonlyMap<string, number>;
  readonly nodeTiming: Readonly<Record<string, any>>;
  eventLoopUtilization(): { idle: number; active: number; utilization: number };
  markResourceTiming(): void;
  timerify<F extends (...args: any[]) => any>(fn: F): F;
  getEntries(): PerformanceEntry[];
  getEntriesByName(name: string, type?: string): PerformanceEntry[];
  getEntriesByType(type: string): PerformanceEntry[];
  toJSON(): any;
}
declare var performance: Performance;

declare class PerformanceObserverEntryList {
  private constructor();
  getEntries(): PerformanceEntry[];
  getEntriesByName(name: string, type?: string): PerformanceEntry[];
  getEntriesByType(type: string): PerformanceEntry[];
}

declare class PerformanceObserver {
  constructor(callback: (entries: PerformanceObserverEntryList, observer: PerformanceObserver) => void);
  static readonly supportedEntryTypes: readonly string[];
  observe(options?: { entryTypes?: string[]; type?: string; buffered?: boolean }): void;
  disconnect(): void;
  takeRecords(): PerformanceEntry[];
}

declare class Navigator {
  private constructor();
  readonly hardwareConcurrency: number;
  readonly language: string;
  readonly languages: readonly string[];
  readonly userAgent: string;
  readonly appCodeName: string;
  readonly appName: string;
  readonly appVersion: string;
  readonly platform: string;
  readonly product: string;
  sendBeacon(url: string | URL, data?: BodyInit | null): boolean;
}
declare var navigator: Navigator;

// https://developers.cloudflare.com/workers/configuration/compatibility-flags/
declare var Cloudflare: { readonly compatibilityFlags: Readonly<Record<string, boolean>> };

// https://console.spec.whatwg.org/
interface Console {
  assert(condition?: boolean, ...data: any[]): void;
  clear(): void;
  count(label?: string): void;
  countReset(label?: string): void;
  debug(...data: any[]): void;
  dir(item?: any, options?: { depth?: number | null }): void;
  dirxml(...data: any[]): void;
  profile(label?: string): void;
  profileEnd(label?: string): void;
  timeStamp(label?: string): void;
  error(...data: any[]): void;
  group(...data: any[]): void;
  groupCollapsed(...data: any[]): void;
  groupEnd(): void;
  info(...data: any[]): void;
  log(...data: any[]): void;
  table(data?: any, properties?: string[]): void;
  time(label?: string): void;
  timeEnd(label?: string): void;
  timeLog(label?: string, ...data: any[]): void;
  trace(...data: any[]): void;
  warn(...data: any[]): void;
}
declare var console: Console;

// https://webassembly.github.io/spec/js-api/. Modules are imported from their files: bytes are not compiled.
declare namespace WebAssembly {
  type ImportExportKind = "function" | "table" | "memory" | "global" | "tag";
  type ValueType = "i32" | "i64" | "f32" | "f64" | "v128" | "externref" | "anyfunc";
  type ImportValue = ((...args: any[]) => any) | Global | Memory | Table | Tag | number | bigint;
  type Imports = Record<string, Record<string, ImportValue>>;
  type Exports = Record<string, any>;

  class CompileError extends Error {}
  class LinkError extends Error {}
  class RuntimeError extends Error {}

  class Module {
    private constructor();
    static customSections(module: Module, name: string): ArrayBuffer[];
    static exports(module: Module): { name: string; kind: ImportExportKind }[];
    static imports(module: Module): { module: string; name: string; kind: ImportExportKind }[];
  }
  class Instance {
    constructor(module: Module, imports?: Imports);
    readonly exports: Exports;
  }
  class Memory {
    constructor(descriptor: { initial: number; maximum?: number });
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }
  class Table {
    constructor(descriptor: { element: "anyfunc" | "externref"; initial: number; maximum?: number }, value?: any);
    readonly length: number;
    get(index: number): any;
    grow(count: number, value?: any): number;
    set(index: number, value?: any): void;
  }
  class Global<Value = any> {
    constructor(descriptor: { value: ValueType; mutable?: boolean }, value?: Value);
    value: Value;
    valueOf(): Value;
  }
  class Tag {
    constructor(type: { parameters: ValueType[] });
  }
  class Exception extends Error {
    constructor(tag: Tag, payload: any[], options?: { traceStack?: boolean });
    is(tag: Tag): boolean;
    getArg(tag: Tag, index: number): any;
  }
  const JSTag: Tag;

  function instantiate(module: Module, imports?: Imports): Promise<Instance>;
  function validate(bytes: BytesOf): boolean;
}
