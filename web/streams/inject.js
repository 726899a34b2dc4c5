// The libraries for streams and URL patterns use these globals. The bundler binds them to the modules below (`inject` in
// tools/build_web.mjs), so that a worker that replaces a global does not change how the libraries work.
export { AbortController } from "../dom/abort.js";
export { structuredClone } from "../dom/clone.js";
export { queueMicrotask } from "../timers.js";
export { URL } from "../url/url.js";
