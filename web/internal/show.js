// A value as text, for logs and error messages. What knows how is read when the first value has to be shown.
import { lazy } from "./lazy.js";

export function inspect(value, options) {
  return lazy("internal/inspect.js").inspect(value, options);
}
