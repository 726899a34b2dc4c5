// The streams library takes these from the global object when it needs them. The bundler binds them to ours instead
// (`inject` in tools/build_web.mjs), so that a worker that replaces a global does not change how streams work.
export { AbortController } from "../dom/abort.js";
export { structuredClone } from "../dom/clone.js";
export { queueMicrotask } from "../timers.js";
