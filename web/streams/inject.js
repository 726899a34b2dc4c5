// The libraries for streams and URL patterns take these from the global object when they need them. The bundler binds them to ours instead
// (`inject` in tools/build_web.mjs), so that a worker that replaces a global does not change how they work.
export { AbortController } from "../dom/abort.js";
export { structuredClone } from "../dom/clone.js";
export { queueMicrotask } from "../timers.js";
export { URL } from "../url/url.js";
