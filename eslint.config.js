// `npx eslint`: the web platform may use nothing but the language, so a global that is not ours is a mistake found here.
import js from "@eslint/js";

const rules = {
  ...js.configs.recommended.rules,
  "consistent-return": "off",
  eqeqeq: "error",
  "max-lines": ["error", 400],
  "no-unused-expressions": "off",
  "no-control-regex": "off",
  "no-var": "error",
  "object-shorthand": "error",
  "prefer-const": "error",
};

// What a worker sees (see web/globals.js).
const worker = Object.fromEntries(
  [
    "AbortController", "AbortSignal", "Blob", "BroadcastChannel", "ByteLengthQueuingStrategy", "Cache", "CacheStorage", "CloseEvent", "WebSocket", "WebSocketPair", "CompressionStream",
    "CountQueuingStrategy", "Crypto", "CryptoKey", "CustomEvent", "DOMException", "DecompressionStream", "ErrorEvent",
    "Event", "EventSource", "EventTarget", "ExtendableEvent", "FetchEvent", "File", "FileReader", "FixedLengthStream", "FormData", "Headers",
    "IdentityTransformStream", "MessageChannel", "MessageEvent", "MessagePort", "Observable", "Performance", "PerformanceEntry",
    "PerformanceMark", "PerformanceMeasure", "PerformanceObserver", "PerformanceObserverEntryList", "ProgressEvent", "PromiseRejectionEvent", "QuotaExceededError", "ReadableStream",
    "ReadableStreamBYOBReader", "ReadableStreamDefaultReader", "Request", "Response", "ServiceWorkerGlobalScope",
    "Subscriber", "SubtleCrypto", "TextDecoder", "TextDecoderStream", "TextEncoder", "TextEncoderStream", "TransformStream", "URL",
    "URLPattern", "URLSearchParams", "WebAssembly", "WorkerGlobalScope", "WritableStream",
    "WritableStreamDefaultController", "addEventListener", "atob", "btoa", "caches", "clearImmediate", "clearInterval",
    "clearTimeout", "console", "crossOriginIsolated", "crypto", "dispatchEvent", "fetch", "isSecureContext", "navigator", "origin", "performance", "queueMicrotask",
    "removeEventListener", "reportError", "scheduler", "self", "setImmediate", "setInterval", "setTimeout",
    "structuredClone",
  ].map((name) => [name, "readonly"]),
);

export default [
  { ignores: ["**/*.gen.js", "build/", "dist/", ".venv/", "node_modules/"] },
  { files: ["web/**/*.js", "atoll/bindings/**/*.js"], rules },
  { files: ["web/internal/native.js"], languageOptions: { globals: { native: "readonly" } } },
  { files: ["web/node/modules.js"], languageOptions: { globals: { require: "readonly" } } },
  { files: ["tests/**/*.js", "examples/**/*.js", "atoll/cli/templates/**/*.js"], rules, languageOptions: { globals: worker } },
  // Attacks do on purpose what nobody should.
  { files: ["tests/engine/attacks/*.js"], rules: Object.fromEntries(Object.keys(rules).map((name) => [name, "off"])) },
  {
    files: ["tools/**/*.mjs", "engine/*.js", "eslint.config.js", "bench/**/*.mjs", "atoll/project/*.mjs"],
    rules,
    languageOptions: { globals: { Buffer: "readonly", console: "readonly", process: "readonly" } },
  },
];
