// https://dom.spec.whatwg.org/#events and https://dom.spec.whatwg.org/#aborting-ongoing-activities
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

export const tests = {
  "an event reaches its listeners in order": () => {
    const target = new EventTarget();
    const log = [];
    target.addEventListener("x", (event) => log.push("bubble", event.type, event.target === target, event.eventPhase));
    target.addEventListener("x", () => log.push("capture"), true);
    target.addEventListener("x", { handleEvent: () => log.push("object") });
    target.addEventListener("y", () => log.push("wrong"));
    const event = new Event("x");
    equal(target.dispatchEvent(event), true);
    deepEqual(log, ["capture", "bubble", "x", true, Event.AT_TARGET, "object"]);
    equal(event.currentTarget, null);
    equal(event.eventPhase, 0);
    equal(event.isTrusted, false);
  },
  "the same listener is added once and can be removed": () => {
    const target = new EventTarget();
    let count = 0;
    const listener = () => count++;
    target.addEventListener("x", listener);
    target.addEventListener("x", listener);
    target.addEventListener("x", null);
    target.dispatchEvent(new Event("x"));
    equal(count, 1);
    target.removeEventListener("x", listener, true);
    target.dispatchEvent(new Event("x"));
    equal(count, 2);
    target.removeEventListener("x", listener);
    target.dispatchEvent(new Event("x"));
    equal(count, 2);
    throws(() => target.addEventListener("x", 5), TypeError);
    throws(() => target.addEventListener("x"), TypeError);
  },
  "once, signal, passive": () => {
    const target = new EventTarget();
    const log = [];
    const controller = new AbortController();
    target.addEventListener("x", () => log.push("once"), { once: true });
    target.addEventListener("x", () => log.push("signal"), { signal: controller.signal });
    target.addEventListener("x", (event) => event.preventDefault(), { passive: true });
    equal(target.dispatchEvent(new Event("x", { cancelable: true })), true);
    controller.abort();
    target.dispatchEvent(new Event("x"));
    deepEqual(log, ["once", "signal"]);
    target.addEventListener("x", () => log.push("never"), { signal: controller.signal });
    target.dispatchEvent(new Event("x"));
    equal(log.length, 2);
    throws(() => target.addEventListener("x", () => {}, { signal: {} }), TypeError);
    throws(() => target.addEventListener("x", () => {}, { signal: null }), TypeError);
  },
  "an event can be canceled and stopped": () => {
    const target = new EventTarget();
    const log = [];
    target.addEventListener("x", (event) => {
      event.preventDefault();
      event.stopImmediatePropagation();
    });
    target.addEventListener("x", () => log.push("never"));
    const event = new Event("x", { cancelable: true });
    equal(target.dispatchEvent(event), false);
    equal(event.defaultPrevented, true);
    equal(event.returnValue, false);
    equal(target.dispatchEvent(new Event("x")), true);
    equal(log.length, 0);
  },
  "listeners may change the list while it is used": () => {
    const target = new EventTarget();
    const log = [];
    const second = () => log.push("second");
    target.addEventListener("x", () => {
      target.removeEventListener("x", second);
      target.addEventListener("x", () => log.push("late"));
    });
    target.addEventListener("x", second);
    target.dispatchEvent(new Event("x"));
    deepEqual(log, []);
    target.dispatchEvent(new Event("x"));
    deepEqual(log, ["late"]);
  },
  "an event cannot be dispatched twice at the same time": () => {
    const target = new EventTarget();
    let error;
    target.addEventListener("x", (event) => {
      error = throws(() => target.dispatchEvent(event), DOMException);
    });
    target.dispatchEvent(new Event("x"));
    equal(error.name, "InvalidStateError");
    throws(() => target.dispatchEvent({}), TypeError);
    throws(() => new Event(), TypeError);
  },
  "an error of a listener is reported and does not stop the others": () => {
    const target = new EventTarget();
    const seen = [];
    const onError = (event) => {
      seen.push(event.error, event.message);
      event.preventDefault();
    };
    addEventListener("error", onError);
    const thrown = new RangeError("oops");
    target.addEventListener("x", () => {
      throw thrown;
    });
    target.addEventListener("x", () => seen.push("next"));
    target.dispatchEvent(new Event("x"));
    reportError(5);
    removeEventListener("error", onError);
    deepEqual(seen, [thrown, "Uncaught RangeError: oops", "next", 5, "Uncaught 5"]);
  },
  "the global object is an event target": () => {
    const log = [];
    const listener = (event) => log.push(event.target === globalThis);
    addEventListener("mine", listener);
    self.dispatchEvent(new Event("mine"));
    globalThis.removeEventListener("mine", listener);
    dispatchEvent(new Event("mine"));
    deepEqual(log, [true]);
  },
  "events with additional members": () => {
    equal(new CustomEvent("x", { detail: { a: 1 } }).detail.a, 1);
    equal(new CustomEvent("x").detail, null);
    const error = new ErrorEvent("error", { message: "m", filename: "f", lineno: 1, colno: 2, error: 3 });
    deepEqual([error.message, error.filename, error.lineno, error.colno, error.error], ["m", "f", 1, 2, 3]);
    const promise = Promise.resolve();
    const rejection = new PromiseRejectionEvent("unhandledrejection", { promise, reason: 1 });
    equal(rejection.promise, promise);
    throws(() => new PromiseRejectionEvent("x"), TypeError);
    throws(() => new PromiseRejectionEvent("x", {}), TypeError);
    const event = new Event("a", { bubbles: true });
    event.initEvent("b", false, true);
    deepEqual([event.type, event.bubbles, event.cancelable], ["b", false, true]);
  },
  "EventTarget can be extended": () => {
    class Bus extends EventTarget {}
    const bus = new Bus();
    let heard = false;
    bus.addEventListener("x", () => {
      heard = true;
    });
    bus.dispatchEvent(new CustomEvent("x"));
    ok(heard);
  },
  "an AbortController aborts its signal once": () => {
    const controller = new AbortController();
    const { signal } = controller;
    const log = [];
    signal.onabort = (event) => log.push(event.type, event.isTrusted);
    signal.addEventListener("abort", () => log.push("listener"));
    controller.abort();
    controller.abort("again");
    deepEqual(log, ["abort", true, "listener"]);
    equal(signal.aborted, true);
    equal(signal.reason.name, "AbortError");
    ok(signal.reason instanceof DOMException);
    equal(throws(() => signal.throwIfAborted()), signal.reason);
    throws(() => new AbortSignal(), TypeError);
  },
  "AbortSignal.abort and onabort": () => {
    equal(AbortSignal.abort("why").reason, "why");
    equal(AbortSignal.abort().reason.name, "AbortError");
    const controller = new AbortController();
    const log = [];
    controller.signal.onabort = () => log.push(1);
    controller.signal.onabort = () => log.push(2);
    controller.abort();
    deepEqual(log, [2]);
    controller.signal.onabort = null;
    equal(controller.signal.onabort, null);
  },
  "AbortSignal.timeout": async () => {
    const signal = AbortSignal.timeout(5);
    equal(signal.aborted, false);
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    equal(signal.reason.name, "TimeoutError");
    throws(() => AbortSignal.timeout(-1), TypeError);
    throws(() => AbortSignal.timeout(NaN), TypeError);
    throws(() => AbortSignal.timeout(), TypeError);
  },
  "AbortSignal.any follows all its sources, also when nested": () => {
    const first = new AbortController();
    const second = new AbortController();
    const any = AbortSignal.any([first.signal, second.signal]);
    const nested = AbortSignal.any([any]);
    const log = [];
    nested.addEventListener("abort", () => log.push("nested", any.aborted));
    any.addEventListener("abort", () => log.push("any", nested.aborted));
    second.abort("two");
    first.abort("one");
    deepEqual(log, ["any", true, "nested", true]);
    equal(nested.reason, "two");
    equal(AbortSignal.any([]).aborted, false);
    equal(AbortSignal.any([AbortSignal.abort(1), AbortSignal.abort(2)]).reason, 1);
    throws(() => AbortSignal.any([{}]), TypeError);
    throws(() => AbortSignal.any(5), TypeError);
  },
  "a long-lived signal may be followed many times": () => {
    const controller = new AbortController();
    let count = 0;
    for (let i = 0; i < 20_000; i++) AbortSignal.any([controller.signal]);
    for (let i = 0; i < 10; i++) AbortSignal.any([controller.signal]).addEventListener("abort", () => count++);
    controller.abort();
    equal(count, 10);
  },
  "a long-lived signal does not retain finished followers": async () => {
    const { signal } = new AbortController();
    const turn = () => new Promise((resolve) => setTimeout(resolve));
    const uses = [
      (big) => {
        const target = new EventTarget();
        target.addEventListener("x", () => big.length, { signal, once: true });
        target.dispatchEvent(new Event("x"));
      },
      (big) => {
        const any = Object.assign(AbortSignal.any([signal]), { big });
        const listener = () => big.length;
        any.addEventListener("abort", listener);
        any.removeEventListener("abort", listener);
        any.onabort = listener;
        any.onabort = null;
      },
      (big) => scheduler.wait(0, { signal: Object.assign(AbortSignal.any([signal]), { big }) }),
      (big) => {
        const any = Object.assign(AbortSignal.any([signal]), { big });
        return new Response("x").body.pipeTo(new WritableStream(), { signal: any });
      },
    ];
    // Each takes twice the memory limit of a worker.
    for (const use of uses) {
      for (let i = 0; i < 256; i++) {
        await use(new Uint8Array(1 << 20));
        await turn();
      }
    }
  },
  "removing one listener does not affect the others": async () => {
    const controller = new AbortController();
    const any = AbortSignal.any([controller.signal]);
    const log = [];
    const first = () => log.push("first");
    any.addEventListener("abort", first);
    any.addEventListener("abort", () => log.push("second"));
    any.removeEventListener("abort", first);
    const waiting = rejects(scheduler.wait(60_000, { signal: any }));
    const target = new EventTarget();
    target.addEventListener("x", () => log.push("x"), { signal: any });
    controller.abort("over");
    equal(await waiting, "over");
    target.dispatchEvent(new Event("x"));
    deepEqual(log, ["second"]);
  },
  "DOMException": () => {
    const error = new DOMException("text", "AbortError");
    equal(error.code, 20);
    equal(error.code, DOMException.ABORT_ERR);
    ok(error instanceof Error);
    equal(String(error), "AbortError: text");
    ok(error.stack.includes("AbortError: text"));
    equal(new DOMException().name, "Error");
    equal(new DOMException("x", "Unknown").code, 0);
    equal(Object.prototype.toString.call(error), "[object DOMException]");
    equal(new DOMException("", "DataCloneError").code, 25);
    const quota = new QuotaExceededError("q", { quota: 1, requested: 2 });
    deepEqual([quota.name, quota.code, quota.quota, quota.requested], ["QuotaExceededError", 22, 1, 2]);
    throws(() => new QuotaExceededError("q", { quota: -1 }), RangeError);
    throws(() => Object.getOwnPropertyDescriptor(DOMException.prototype, "name").get.call({}), TypeError);
  },
  "a pipe is stopped by a signal": async () => {
    const controller = new AbortController();
    const piped = new ReadableStream().pipeTo(new WritableStream(), { signal: controller.signal });
    controller.abort("enough");
    equal(await piped.catch((reason) => reason), "enough");
    await rejects(new ReadableStream().pipeTo(new WritableStream(), { signal: AbortSignal.abort() }), "AbortError");
  },
};
