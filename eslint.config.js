// `npx eslint`: the web platform may use nothing but the language, so any other global is an error.
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

// The globals of a worker (see web/globals.js).
const worker = Object.fromEntries(
  [
    "AbortController", "AbortSignal", "Blob", "BroadcastChannel", "ByteLengthQueuingStrategy", "Cache", "CacheStorage", "CloseEvent", "WebSocket", "WebSocketPair", "WebSocketRequestResponsePair", "CompressionStream", "HTMLRewriter",
    "CountQueuingStrategy", "Crypto", "CryptoKey", "CustomEvent", "DOMException", "DecompressionStream", "ErrorEvent",
    "Event", "EventSource", "EventTarget", "ExtendableEvent", "FetchEvent", "File", "FileReader", "FixedLengthStream", "FormData", "Headers",
    "IdentityTransformStream", "MessageChannel", "MessageEvent", "MessagePort", "Observable", "Performance", "PerformanceEntry",
    "PerformanceMark", "PerformanceMeasure", "PerformanceObserver", "PerformanceObserverEntryList", "ProgressEvent", "PromiseRejectionEvent", "QuotaExceededError", "ReadableStream",
    "ReadableStreamBYOBReader", "ReadableStreamDefaultReader", "Request", "Response", "ServiceWorkerGlobalScope",
    "Subscriber", "SubtleCrypto", "TextDecoder", "TextDecoderStream", "TextEncoder", "TextEncoderStream", "TransformStream", "URL",
    "URLPattern", "URLSearchParams", "WebAssembly", "WorkerGlobalScope", "WritableStream",
    "WritableStreamDefaultController", "addEventListener", "atob", "btoa", "caches", "clearImmediate", "clearInterval",
    "Cloudflare", "clearTimeout", "console", "crossOriginIsolated", "crypto", "dispatchEvent", "fetch", "isSecureContext", "navigator", "origin", "performance", "queueMicrotask",
    "removeEventListener", "reportError", "scheduler", "self", "setImmediate", "setInterval", "setTimeout",
    "structuredClone",
  ].map((name) => [name, "readonly"]),
);

export default [
  { ignores: ["**/*.gen.js", "tests/templates/", "build/", "dist/", ".venv/", "node_modules/"] },
  { files: ["web/**/*.js", "atoll/bindings/**/*.js"], rules },
  { files: ["web/internal/native.js"], languageOptions: { globals: { native: "readonly" } } },
  { files: ["web/node/modules.js"], languageOptions: { globals: { require: "readonly" } } },
  { files: ["tests/**/*.js", "examples/**/*.js", "atoll/**/templates/**/*.js"], rules, languageOptions: { globals: worker } },
  { files: ["tests/packages/**/*.js"], languageOptions: { globals: { Buffer: "readonly", process: "readonly" } } },
  // Scripts of pages run in browsers.
  {
    files: ["examples/*/public/**/*.js"],
    languageOptions: { globals: { document: "readonly", history: "readonly", location: "readonly" } },
  },
  // The dashboard runs in browsers, and only there.
  {
    files: ["dashboard/**/*.js", "atoll/bindings/*/dashboard/*.js"],
    rules,
    languageOptions: {
      globals: Object.fromEntries(
        [
          "AbortController", "AbortSignal", "Blob", "DOMException", "FormData", "Headers", "Response", "TextDecoder", "TextDecoderStream", "TextEncoder", "URL",
          "URLSearchParams", "addEventListener", "atob", "clearInterval", "clearTimeout", "crypto", "document", "fetch", "getComputedStyle", "history",
          "isSecureContext", "localStorage", "location", "matchMedia", "navigator", "performance", "queueMicrotask",
          "removeEventListener", "requestAnimationFrame", "sessionStorage", "setInterval", "setTimeout", "Event", "ResizeObserver", "CSS", "Highlight", "Range", "window",
        ].map((name) => [name, "readonly"]),
      ),
    },
  },
  // Attacks break these rules on purpose.
  { files: ["tests/engine/attacks/*.js"], rules: Object.fromEntries(Object.keys(rules).map((name) => [name, "off"])) },
  {
    files: ["tools/**/*.mjs", "engine/*.js", "eslint.config.js", "bench/**/*.mjs", "atoll/project/*.mjs"],
    rules,
    languageOptions: { globals: { Buffer: "readonly", console: "readonly", process: "readonly" } },
  },
];
