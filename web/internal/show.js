// A value as text, for logs and error messages. inspect.js is loaded when the first value is shown.
import { lazy } from "./lazy.js";

export function inspect(value, options) {
  return lazy("internal/inspect.js").inspect(value, options);
}
