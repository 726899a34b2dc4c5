// Where an exception goes that no caller is there to catch: a listener's, a timer's, one given to reportError.
//
// This file knows neither events nor calls: global_scope.js sets what happens first (the `error` event), and the worker's
// entry sets where it ends.

let handle = () => {};

export function setExceptionHandler(handler) {
  handle = handler;
}

/** https://html.spec.whatwg.org/multipage/webappapis.html#report-an-exception */
export function reportException(error) {
  handle(error);
}
