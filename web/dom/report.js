// Reports an exception that no caller can catch: from a listener, a timer or reportError().
//
// This file depends on neither events nor calls. global_scope.js defines the first step (the `error` event); the worker's entry
// point defines the last one.

let handle = () => {};

export function setExceptionHandler(handler) {
  handle = handler;
}

/** https://html.spec.whatwg.org/multipage/webappapis.html#report-an-exception */
export function reportException(error) {
  handle(error);
}
