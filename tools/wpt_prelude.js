// Runs one test of web-platform-tests in a worker. tools/wpt_suite.py adds TEST_URL, TITLE, PATIENCE in ms, and runTest(), which
// holds testharness.js, the scripts of the test and the test itself.
/* global TEST_URL, TITLE, PATIENCE, runTest */
const { href, origin, protocol, host, hostname, port, pathname, search } = new URL(TEST_URL);
const location = { href, origin, protocol, host, hostname, port, pathname, search, hash: "", toString: () => href };

/** Adds what a browser's worker has and a worker without a page lacks: an address of its own. */
function makeScope() {
  globalThis.location = location;
  globalThis.META_TITLE = TITLE;
  globalThis.GLOBAL = { isWindow: () => false, isWorker: () => true, isShadowRealm: () => false };
  globalThis.importScripts = () => {};
  const { Request: RealRequest, Response: RealResponse, fetch: realFetch } = globalThis;
  const absolute = (input) => new URL(input, location).href;
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
  replace("fetch", new Proxy(realFetch, {
    apply(target, self, given) {
      const [input, ...init] = given;
      if (given.length === 0 || input instanceof RealRequest) return Reflect.apply(target, self, given);
      try {
        return Reflect.apply(target, self, [absolute(input), ...init]);
      } catch (error) {
        return Promise.reject(error);
      }
    },
  }));
}

/** Replaces a global where it is defined: on the global object, or on one that it inherits from. */
function replace(name, value) {
  let holder = globalThis;
  while (!Object.hasOwn(holder, name)) holder = Object.getPrototypeOf(holder);
  Object.defineProperty(holder, name, { ...Object.getOwnPropertyDescriptor(holder, name), value });
}

/** Hides these classes: testharness.js then takes the scope for a plain shell and waits for no service worker. */
function withoutWorkerScopes(body) {
  const names = ["ServiceWorkerGlobalScope", "WorkerGlobalScope"];
  const hidden = names.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]);
  for (const name of names) {
    Object.defineProperty(globalThis, name, { value: class {}, writable: true, enumerable: false, configurable: true });
  }
  try {
    body();
  } finally {
    for (const [name, descriptor] of hidden) {
      if (descriptor === undefined) delete globalThis[name];
      else Object.defineProperty(globalThis, name, descriptor);
    }
  }
}

function report() {
  return new Promise((resolve) => {
    // The harness then ends running tests and reports them.
    const timer = setTimeout(() => globalThis.timeout(), PATIENCE);
    const finish = (status, tests = []) => {
      clearTimeout(timer);
      resolve({ status, results: tests.map((test) => [test.name, test.status, test.message]) });
    };
    globalThis.reportTo = () => {
      globalThis.add_completion_callback((tests, harness) => {
        finish(harness.status === 0 ? "ok" : `error: ${harness.message ?? "timeout"}`, tests);
      });
    };
    makeScope();
    try {
      runTest(withoutWorkerScopes);
    } catch (error) {
      // The harness then reports the results so far, as in a browser.
      dispatchEvent(new ErrorEvent("error", { error, message: `${error?.message ?? error}` }));
    }
  });
}

addEventListener("fetch", (event) => {
  event.respondWith(report().then((report) => Response.json(report)));
});
