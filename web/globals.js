// Exposes every global of a worker, one line each under its specification.
import { Cache, caches, CacheStorage } from "#bindings/cache/cache.js";
import { fetch } from "#bindings/fetch/fetch.js";
import { AbortController, AbortSignal } from "./dom/abort.js";
import { setClonedErrors, structuredClone } from "./dom/clone.js";
import { CustomEvent, ErrorEvent, Event, PromiseRejectionEvent } from "./dom/event.js";
import { EventTarget, setObservables } from "./dom/event_target.js";
import { DOMException, QuotaExceededError } from "./dom/exception.js";
import { ExtendableEvent, FetchEvent, reportError } from "./dom/global_scope.js";
import { makeGlobalHandler, ServiceWorkerGlobalScope, WorkerGlobalScope } from "./dom/worker_global_scope.js";
import { console } from "./console.js";
import { Crypto, crypto } from "./crypto/crypto.js";
import { CryptoKey } from "./crypto/key.js";
import { SubtleCrypto } from "./crypto/subtle.js";
import { atob, btoa } from "./encoding/base64.js";
import { TextDecoder } from "./encoding/text_decoder.js";
import { TextEncoder } from "./encoding/text_encoder.js";
import { Headers } from "./fetch/headers.js";
import { Request } from "./fetch/request.js";
import { Response } from "./fetch/response.js";
import { Blob } from "./file/blob.js";
import { File } from "./file/file.js";
import { FormData } from "./file/form_data.js";
import { lazy } from "./internal/lazy.js";
import { native } from "./internal/native.js";
import { Navigator, navigator } from "./navigator.js";
import { Performance, performance } from "./performance.js";
import { Scheduler, scheduler } from "./scheduler.js";
import * as streams from "./streams/streams.js";
import * as timerObjects from "./timer_objects.js";
import * as timers from "./timers.js";
import { URL, URLSearchParams } from "./url/url.js";
import { isOn, whenFlagsAreSet } from "./worker/compatibility.js";

// An interface object is not enumerable. https://webidl.spec.whatwg.org/#define-the-global-property-references
function exposeInterface(scope, name, Class) {
  Object.defineProperty(scope, name, { value: Class, writable: true, enumerable: false, configurable: true });
}

// For an interface that few workers use: it is loaded on first access.
function exposeLazily(name, load) {
  native.defineLazyGlobal(name, load);
}

// The functions below define members of WorkerGlobalScope. The global object inherits from it, so they
// are on its prototype. https://webidl.spec.whatwg.org/#define-the-operations
const members = WorkerGlobalScope.prototype;

/** An operation. `operation` does not use `this`, so the rest of the platform can call it as a plain function. */
function exposeOperation(name, operation, refuse = fail) {
  const { [name]: checked } = {
    [name](...args) {
      return isGlobal(this) ? operation(...args) : refuse(wrongThis(name));
    },
  };
  Object.defineProperty(checked, "length", { value: operation.length, configurable: true });
  Object.defineProperty(members, name, { value: checked, writable: true, enumerable: true, configurable: true });
}

function fail(error) {
  throw error;
}

/** An attribute that a worker may replace, as [Replaceable] allows for most. */
function exposeAttribute(name, value) {
  const replace = (next) =>
    Object.defineProperty(globalThis, name, { value: next, writable: true, enumerable: true, configurable: true });
  defineAccessor(name, () => value, replace);
}

/** A read-only attribute. */
function exposeReadOnly(name, value) {
  defineAccessor(name, () => value);
}

// https://html.spec.whatwg.org/multipage/webappapis.html#event-handler-idl-attributes
function exposeHandler(name, type) {
  const { get, set } = makeGlobalHandler(globalThis, type);
  defineAccessor(name, get, set);
}

function defineAccessor(name, get, set = undefined) {
  const accessor = Object.getOwnPropertyDescriptor(
    {
      get [name]() {
        return isGlobal(this) ? get() : fail(wrongThis(name));
      },
      set [name](value) {
        if (!isGlobal(this)) fail(wrongThis(name));
        set(value);
      },
    },
    name,
  );
  if (set === undefined) accessor.set = undefined;
  Object.defineProperty(members, name, accessor);
}

/** Called without an object, a member applies to the global object. https://webidl.spec.whatwg.org/#dfn-attribute-getter */
function isGlobal(object) {
  return object === undefined || object === null || object === globalThis;
}

function wrongThis(name) {
  return new TypeError(`Illegal invocation: ${name} was called on an object that is not the global object.`);
}

function exposeStreams(scope) {
  // https://streams.spec.whatwg.org/#globals
  exposeInterface(scope, "ByteLengthQueuingStrategy", streams.ByteLengthQueuingStrategy);
  exposeInterface(scope, "CountQueuingStrategy", streams.CountQueuingStrategy);
  exposeInterface(scope, "ReadableByteStreamController", streams.ReadableByteStreamController);
  exposeInterface(scope, "ReadableStream", streams.ReadableStream);
  exposeInterface(scope, "ReadableStreamBYOBReader", streams.ReadableStreamBYOBReader);
  exposeInterface(scope, "ReadableStreamBYOBRequest", streams.ReadableStreamBYOBRequest);
  exposeInterface(scope, "ReadableStreamDefaultController", streams.ReadableStreamDefaultController);
  exposeInterface(scope, "ReadableStreamDefaultReader", streams.ReadableStreamDefaultReader);
  exposeInterface(scope, "TransformStream", streams.TransformStream);
  exposeInterface(scope, "TransformStreamDefaultController", streams.TransformStreamDefaultController);
  exposeInterface(scope, "WritableStream", streams.WritableStream);
  exposeInterface(scope, "WritableStreamDefaultController", streams.WritableStreamDefaultController);
  exposeInterface(scope, "WritableStreamDefaultWriter", streams.WritableStreamDefaultWriter);
  // https://compression.spec.whatwg.org/
  exposeLazily("CompressionStream", () => lazy("streams/compression.js").CompressionStream);
  exposeLazily("DecompressionStream", () => lazy("streams/compression.js").DecompressionStream);
  // https://developers.cloudflare.com/workers/runtime-apis/html-rewriter/
  exposeLazily("HTMLRewriter", () => lazy("html/rewriter.js").HTMLRewriter);
  // https://developers.cloudflare.com/workers/runtime-apis/streams/transformstream/
  exposeLazily("FixedLengthStream", () => lazy("streams/identity.js").FixedLengthStream);
  exposeLazily("IdentityTransformStream", () => lazy("streams/identity.js").IdentityTransformStream);
}

function exposeEvents(scope) {
  // https://dom.spec.whatwg.org/#events
  exposeInterface(scope, "Event", Event);
  exposeInterface(scope, "CustomEvent", CustomEvent);
  exposeInterface(scope, "EventTarget", EventTarget);
  exposeInterface(scope, "AbortController", AbortController);
  exposeInterface(scope, "AbortSignal", AbortSignal);
  // https://wicg.github.io/observable/
  setObservables(() => lazy("dom/observable.js"));
  exposeLazily("Observable", () => lazy("dom/observable.js").Observable);
  exposeLazily("Subscriber", () => lazy("dom/observable.js").Subscriber);
  // https://html.spec.whatwg.org/multipage/workers.html#the-workerglobalscope-common-interface
  // addEventListener, removeEventListener and dispatchEvent are inherited from EventTarget.
  exposeInterface(scope, "WorkerGlobalScope", WorkerGlobalScope);
  exposeInterface(scope, "ServiceWorkerGlobalScope", ServiceWorkerGlobalScope);
  Object.setPrototypeOf(scope, ServiceWorkerGlobalScope.prototype);
  exposeHandler("onerror", "error");
  exposeHandler("onunhandledrejection", "unhandledrejection");
  exposeHandler("onrejectionhandled", "rejectionhandled");
  // https://html.spec.whatwg.org/multipage/web-messaging.html
  exposeLazily("BroadcastChannel", () => lazy("dom/broadcast_channel.js").BroadcastChannel);
  exposeLazily("MessageEvent", () => lazy("dom/message_event.js").MessageEvent);
  exposeLazily("MessageChannel", () => lazy("dom/message_port.js").MessageChannel);
  exposeLazily("MessagePort", () => lazy("dom/message_port.js").MessagePort);
  // https://websockets.spec.whatwg.org/ and https://developers.cloudflare.com/workers/runtime-apis/websockets/
  exposeLazily("WebSocket", () => lazy("sockets/websocket.js").WebSocket);
  exposeLazily("WebSocketPair", () => lazy("sockets/websocket.js").WebSocketPair);
  exposeLazily("WebSocketRequestResponsePair", () => lazy("objects/auto_response.js").WebSocketRequestResponsePair);
  // https://websockets.spec.whatwg.org/#the-closeevent-interface
  exposeLazily("CloseEvent", () => lazy("dom/message_event.js").CloseEvent);
  // https://html.spec.whatwg.org/multipage/webappapis.html#runtime-script-errors
  exposeInterface(scope, "ErrorEvent", ErrorEvent);
  exposeInterface(scope, "PromiseRejectionEvent", PromiseRejectionEvent);
  exposeOperation("reportError", reportError);
  // https://w3c.github.io/ServiceWorker/#extendableevent-interface
  exposeInterface(scope, "ExtendableEvent", ExtendableEvent);
  exposeInterface(scope, "FetchEvent", FetchEvent);
  for (const name of ["ScheduledEvent", "TailEvent", "TraceEvent"]) exposeLazily(name, () => lazy("dom/trigger_events.js")[name]);
}

let hasTimerObjects = false;
whenFlagsAreSet(() => {
  hasTimerObjects = isOn("enable_nodejs_global_timers");
});

/** A function that returns a number, as on the web, or an object, as in Node. */
function exposeTimer(name) {
  const asNumber = timers[name];
  const asObject = timerObjects[name];
  const operation = (...args) => (hasTimerObjects ? asObject(...args) : asNumber(...args));
  Object.defineProperty(operation, "length", { value: asNumber.length });
  exposeOperation(name, operation);
}

function exposeTimers(scope) {
  // https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html
  exposeTimer("setTimeout");
  exposeOperation("clearTimeout", timers.clearTimeout);
  exposeTimer("setInterval");
  exposeOperation("clearInterval", timers.clearInterval);
  exposeOperation("queueMicrotask", timers.queueMicrotask);
  // https://nodejs.org/api/timers.html#setimmediatecallback-args
  exposeTimer("setImmediate");
  exposeOperation("clearImmediate", timers.clearImmediate);
  // https://wicg.github.io/scheduling-apis/#scheduler
  exposeInterface(scope, "Scheduler", Scheduler);
  exposeAttribute("scheduler", scheduler);
}

/** Defines the web platform on the global object. Called once, while the snapshot is made. */
export function installGlobals(scope) {
  // https://html.spec.whatwg.org/multipage/workers.html#dom-workerglobalscope-self
  exposeAttribute("self", scope);
  // https://html.spec.whatwg.org/multipage/webappapis.html#windoworworkerglobalscope-mixin: a worker's code is delivered securely, its
  // memory is not shared, and it has no address.
  exposeReadOnly("isSecureContext", true);
  exposeReadOnly("crossOriginIsolated", false);
  exposeAttribute("origin", "null");

  // https://webidl.spec.whatwg.org/#idl-DOMException
  exposeInterface(scope, "DOMException", DOMException);
  exposeInterface(scope, "QuotaExceededError", QuotaExceededError);

  exposeEvents(scope);
  exposeStreams(scope);
  exposeTimers(scope);

  // https://fetch.spec.whatwg.org/#fetch-api
  exposeOperation("fetch", fetch, (error) => Promise.reject(error));
  exposeInterface(scope, "Headers", Headers);
  exposeInterface(scope, "Request", Request);
  exposeInterface(scope, "Response", Response);

  // https://html.spec.whatwg.org/multipage/server-sent-events.html#the-eventsource-interface
  exposeLazily("EventSource", () => lazy("fetch/event_source.js").EventSource);

  // https://developers.cloudflare.com/workers/runtime-apis/cache/
  exposeInterface(scope, "Cache", Cache);
  exposeInterface(scope, "CacheStorage", CacheStorage);
  exposeAttribute("caches", caches);

  // https://w3c.github.io/FileAPI/#blob-section, https://xhr.spec.whatwg.org/#interface-formdata
  exposeInterface(scope, "Blob", Blob);
  exposeInterface(scope, "File", File);
  exposeInterface(scope, "FormData", FormData);
  // https://w3c.github.io/FileAPI/#APIASynch, https://xhr.spec.whatwg.org/#interface-progressevent
  exposeLazily("FileReader", () => lazy("file/file_reader.js").FileReader);
  exposeLazily("FileList", () => lazy("file/file_reader.js").FileList);
  exposeLazily("ProgressEvent", () => lazy("dom/progress_event.js").ProgressEvent);

  // https://url.spec.whatwg.org/#api
  exposeInterface(scope, "URL", URL);
  exposeInterface(scope, "URLSearchParams", URLSearchParams);
  // https://urlpattern.spec.whatwg.org/#urlpattern-class
  exposeLazily("URLPattern", () => lazy("url/pattern.js").URLPattern);

  // https://encoding.spec.whatwg.org/#api
  exposeInterface(scope, "TextDecoder", TextDecoder);
  exposeInterface(scope, "TextEncoder", TextEncoder);
  exposeLazily("TextDecoderStream", () => lazy("encoding/text_streams.js").TextDecoderStream);
  exposeLazily("TextEncoderStream", () => lazy("encoding/text_streams.js").TextEncoderStream);

  // https://html.spec.whatwg.org/multipage/webappapis.html#atob
  exposeOperation("atob", atob);
  exposeOperation("btoa", btoa);

  // https://html.spec.whatwg.org/multipage/structured-data.html#structured-cloning
  setClonedErrors(() => lazy("dom/cloned_errors.js"));
  exposeOperation("structuredClone", structuredClone);

  // https://w3c.github.io/webcrypto/#Crypto-interface
  exposeInterface(scope, "Crypto", Crypto);
  exposeInterface(scope, "CryptoKey", CryptoKey);
  exposeInterface(scope, "SubtleCrypto", SubtleCrypto);
  exposeAttribute("crypto", crypto);

  // https://w3c.github.io/hr-time/#the-performance-attribute
  exposeInterface(scope, "Performance", Performance);
  exposeAttribute("performance", performance);
  // https://w3c.github.io/performance-timeline/ and https://w3c.github.io/user-timing/
  exposeLazily("PerformanceEntry", () => lazy("performance_entries.js").PerformanceEntry);
  exposeLazily("PerformanceMark", () => lazy("performance_entries.js").PerformanceMark);
  exposeLazily("PerformanceMeasure", () => lazy("performance_entries.js").PerformanceMeasure);
  exposeLazily("PerformanceResourceTiming", () => lazy("performance_node.js").PerformanceResourceTiming);
  exposeLazily("PerformanceObserver", () => lazy("performance_observer.js").PerformanceObserver);
  exposeLazily("PerformanceObserverEntryList", () => lazy("performance_observer.js").PerformanceObserverEntryList);

  // https://html.spec.whatwg.org/multipage/system-state.html#the-navigator-object
  exposeInterface(scope, "Navigator", Navigator);
  exposeAttribute("navigator", navigator);

  // https://developers.cloudflare.com/workers/configuration/compatibility-flags/
  exposeLazily("Cloudflare", () => lazy("worker/cloudflare_global.js").cloudflare);

  // https://console.spec.whatwg.org/#console-namespace
  exposeInterface(scope, "console", console);
}
