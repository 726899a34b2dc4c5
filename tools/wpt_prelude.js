// Runs one test of web-platform-tests in a worker. tools/wpt.py writes around it: RESOURCES (path -> text of files a test
// fetches), TEST_URL, and runTest(), which holds testharness.js, the scripts a test asks for and the test itself.
/* global RESOURCES, TEST_URL, runTest */
const location = new URL(TEST_URL);
const PATIENCE = 40_000; // ms, below the wall limit of the worker

function makeScope() {
  globalThis.location = location;
  globalThis.GLOBAL = { isWindow: () => false, isWorker: () => true, isShadowRealm: () => false };
  globalThis.importScripts = () => {};
  // There is no page an address could be relative to; a test has its own address in mind.
  const absolute = (input) => (input instanceof Request ? input : new URL(input, location).href);
  const { Request: RealRequest, Response: RealResponse } = globalThis;
  const fetchOutside = globalThis.fetch;
  globalThis.Request = new Proxy(RealRequest, {
    construct(target, given, self) {
      const [input, ...init] = given;
      const isRelative = given.length > 0 && !(input instanceof RealRequest);
      return Reflect.construct(target, isRelative ? [absolute(input), ...init] : given, self);
    },
  });
  RealRequest.prototype.constructor = globalThis.Request;
  RealResponse.redirect = new Proxy(RealResponse.redirect, {
    apply(target, self, given) {
      const [url, ...status] = given;
      return Reflect.apply(target, self, given.length > 0 ? [absolute(url), ...status] : given);
    },
  });
  globalThis.fetch = async (input, init) => {
    const url = new URL(input instanceof RealRequest ? input.url : absolute(input));
    const text = RESOURCES[url.pathname];
    if (text !== undefined) return new Response(text);
    if (fetchOutside !== undefined && url.protocol === "data:") return fetchOutside(input, init);
    throw new TypeError(`not served to this test: ${url}`);
  };
}

/** Without these classes testharness.js takes the scope for a plain shell, where it starts no service worker. */
function withoutWorkerScopes(body) {
  const names = ["ServiceWorkerGlobalScope", "WorkerGlobalScope"];
  const hidden = names.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]);
  for (const [name] of hidden) delete globalThis[name];
  try {
    body();
  } finally {
    for (const [name, descriptor] of hidden) Object.defineProperty(globalThis, name, descriptor);
  }
}

function report() {
  const results = [];
  return new Promise((resolve) => {
    const finish = (status) => resolve({ status, results });
    const timer = setTimeout(() => finish("timeout"), PATIENCE);
    globalThis.reportTo = () => {
      globalThis.add_result_callback((test) => results.push([test.name, test.status, test.message]));
      globalThis.add_completion_callback((_, harness) => {
        clearTimeout(timer);
        finish(harness.status === 0 ? "ok" : `error: ${harness.message}`);
      });
    };
    makeScope();
    try {
      runTest(withoutWorkerScopes);
    } catch (error) {
      clearTimeout(timer);
      finish(`error: ${error?.stack ?? error}`);
    }
  });
}

addEventListener("fetch", (event) => {
  event.respondWith(report().then((report) => Response.json(report)));
});
