// For readable-stream, which asks for a package of this name where there is no global one.
export { AbortController, AbortSignal } from "../dom/abort.js";
