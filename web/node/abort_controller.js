// For readable-stream, which imports a package of this name if there is no global AbortController.
export { AbortController, AbortSignal } from "../dom/abort.js";
