// Message ports, the events of the global object and of rejected promises, details of event dispatch.
import { deepEqual, equal, ok, throws } from "./assert.js";

const sleep = (delay) => new Promise((resolve) => setTimeout(resolve, delay));
const next = (target, type) => new Promise((resolve) => target.addEventListener(type, resolve, { once: true }));

export const tests = {
  "a message is a copy and arrives later": async () => {
    const { port1, port2 } = new MessageChannel();
    const value = { a: [1, new Map([[1, 2]])] };
    const log = [];
    port2.onmessage = (event) => log.push(event);
    port1.postMessage(value);
    port1.postMessage("second");
    value.a = null;
    equal(log.length, 0);
    await sleep(5);
    deepEqual(log.map((event) => event.data), [{ a: [1, new Map([[1, 2]])] }, "second"]);
    const [event] = log;
    ok(event instanceof MessageEvent && event.isTrusted && event.target === port2);
    deepEqual([event.origin, event.lastEventId, event.source, event.ports.length], ["", "", null, 0]);
  },
  "messages wait for start": async () => {
    const { port1, port2 } = new MessageChannel();
    const log = [];
    port2.addEventListener("message", (event) => log.push(event.data));
    port1.postMessage(1);
    await sleep(3);
    equal(log.length, 0);
    port2.start();
    port1.postMessage(2);
    await sleep(3);
    deepEqual(log, [1, 2]);
  },
  "buffers and ports are moved": async () => {
    const { port1, port2 } = new MessageChannel();
    const inner = new MessageChannel();
    const buffer = new ArrayBuffer(4);
    inner.port1.postMessage("queued before the move");
    port2.start();
    const arrival = next(port2, "message");
    port1.postMessage({ buffer, port: inner.port2 }, [buffer, inner.port2]);
    equal(buffer.detached, true);
    const event = await arrival;
    equal(event.data.buffer.byteLength, 4);
    equal(event.ports.length, 1);
    equal(event.ports[0], event.data.port);
    ok(event.data.port !== inner.port2 && event.data.port instanceof MessagePort);
    ok(Object.isFrozen(event.ports));
    const queued = next(event.data.port, "message");
    event.data.port.start();
    equal((await queued).data, "queued before the move");
    const answer = next(inner.port1, "message");
    inner.port1.start();
    event.data.port.postMessage("back");
    equal((await answer).data, "back");
    equal(throws(() => port1.postMessage(0, [inner.port2])).name, "DataCloneError");
    const moved = structuredClone({ port: port1 }, { transfer: [port1] });
    ok(moved.port instanceof MessagePort);
  },
  "a value that cannot be sent is an error of the sender": () => {
    const { port1, port2 } = new MessageChannel();
    for (const send of [
      () => port1.postMessage(() => {}), () => port1.postMessage(port2), () => port1.postMessage(0, [port1]),
      () => port1.postMessage(0, [port2, port2]), () => port1.postMessage(0, { transfer: [{}] }), () => structuredClone(port1),
    ]) equal(throws(send, DOMException).name, "DataCloneError");
    throws(() => port1.postMessage(), TypeError);
    throws(() => port1.postMessage(0, 5), TypeError);
    throws(() => new MessagePort(), TypeError);
    throws(() => MessagePort.prototype.postMessage.call({}, 1), TypeError);
  },
  "a closed port is silent and the other end is notified": async () => {
    const { port1, port2 } = new MessageChannel();
    const closed = next(port2, "close");
    let heard = false;
    port2.onmessage = () => { heard = true; };
    port1.close();
    port1.postMessage(1);
    await closed;
    await sleep(2);
    equal(heard, false);
    equal(throws(() => structuredClone(port1, { transfer: [port1] })).name, "DataCloneError");
    for (const item of [1, null, "x"]) throws(() => structuredClone(0, { transfer: [item] }), TypeError);
    throws(() => new MessageChannel().port1.postMessage(0, [1]), TypeError);
  },
  "MessageEvent and CloseEvent": () => {
    const { port1 } = new MessageChannel();
    const event = new MessageEvent("m", { data: 5, origin: "o", lastEventId: "1", ports: [port1], source: port1, bubbles: true });
    deepEqual([event.data, event.origin, event.lastEventId, event.ports[0], event.source, event.bubbles], [5, "o", "1", port1, port1, true]);
    equal(new MessageEvent("m").data, null);
    throws(() => new MessageEvent("m", { ports: [1] }), TypeError);
    throws(() => new MessageEvent("m", { source: 5 }), TypeError);
    event.initMessageEvent("n", false, false, "d");
    deepEqual([event.type, event.data, event.origin], ["n", "d", ""]);
    const close = new CloseEvent("close", { code: 70000, reason: "r", wasClean: 1 });
    deepEqual([close.code, close.reason, close.wasClean], [4464, "r", true]);
    deepEqual([new CloseEvent("c").code, new CloseEvent("c").reason, new CloseEvent("c").wasClean], [0, "", false]);
  },
  "an unhandled rejection is an event": async () => {
    const seen = [];
    const listen = (event) => {
      seen.push([event.type, event.reason, event.promise, event.cancelable]);
      event.preventDefault();
    };
    addEventListener("unhandledrejection", listen);
    addEventListener("rejectionhandled", listen);
    const reason = new Error("nobody cares");
    const promise = Promise.reject(reason);
    const handledInTime = Promise.reject(new Error("in time"));
    handledInTime.catch(() => {});
    await sleep(5);
    deepEqual(seen, [["unhandledrejection", reason, promise, true]]);
    promise.catch(() => {});
    await sleep(5);
    deepEqual(seen[1], ["rejectionhandled", reason, promise, false]);
    removeEventListener("unhandledrejection", listen);
    removeEventListener("rejectionhandled", listen);
  },
  "event handler attributes of the global object": async () => {
    const seen = [];
    equal(globalThis.onerror, null);
    globalThis.onunhandledrejection = (event) => { seen.push(event.reason); return false; };
    globalThis.onerror = (message, file, line, column, error) => { seen.push([message, typeof file, line > 0, column > 0, error.message]); return true; };
    Promise.reject(1);
    reportError(new RangeError("told"));
    await sleep(3);
    globalThis.onunhandledrejection = globalThis.onerror = null;
    deepEqual(seen, [["Uncaught RangeError: told", "string", true, true, "told"], 1]);
  },
  "reportError reports the position": () => {
    let event;
    const listen = (each) => { event = each; each.preventDefault(); };
    addEventListener("error", listen);
    reportError("text");
    removeEventListener("error", listen);
    deepEqual([event.message, event.filename, event.lineno > 0, event.error], ["Uncaught 'text'", "messages.test.js", true, "text"]);
    throws(() => reportError(), TypeError);
  },
  "the global object is an event target": () => {
    ok(globalThis instanceof EventTarget);
    ok(globalThis instanceof WorkerGlobalScope && globalThis instanceof ServiceWorkerGlobalScope);
    equal(Object.hasOwn(globalThis, "addEventListener"), false);
    equal(Object.prototype.toString.call(globalThis), "[object ServiceWorkerGlobalScope]");
    throws(() => new WorkerGlobalScope(), TypeError);
    let seen = null;
    const listen = function (event) { seen = [this, event.target]; };
    addEventListener("custom", listen);
    dispatchEvent(new Event("custom"));
    self.removeEventListener("custom", listen);
    deepEqual([seen[0] === globalThis, seen[1] === globalThis], [true, true]);
  },
  "isTrusted cannot be forged": () => {
    const event = new Event("x");
    const { get, set, enumerable, configurable } = Object.getOwnPropertyDescriptor(event, "isTrusted");
    deepEqual([typeof get, set, enumerable, configurable, get.name], ["function", undefined, true, false, "get isTrusted"]);
    equal(Object.getOwnPropertyDescriptor(new Event("y"), "isTrusted").get, get);
    equal("isTrusted" in Event.prototype, false);
    throws(() => { "use strict"; event.isTrusted = true; }, TypeError);
    throws(() => get.call({}), TypeError);
    const controller = new AbortController();
    let trusted;
    controller.signal.onabort = (real) => { trusted = real; };
    controller.abort();
    equal(trusted.isTrusted, true);
    new EventTarget().dispatchEvent(trusted);
    equal(trusted.isTrusted, false);
  },
  "details of dispatch": () => {
    const target = new EventTarget();
    const log = [];
    target.addEventListener("x", () => {
      log.push("capture");
      target.addEventListener("x", () => log.push("added while capturing"));
    }, true);
    target.dispatchEvent(new Event("x"));
    deepEqual(log, ["capture", "added while capturing"]);
    const other = new EventTarget();
    other.addEventListener("x", (event) => event.stopPropagation(), true);
    other.addEventListener("x", () => log.push("never"));
    other.dispatchEvent(new Event("x"));
    const stopped = new Event("x");
    stopped.stopPropagation();
    target.dispatchEvent(stopped);
    equal(log.length, 2);
    other.addEventListener("y", () => log.push("number is a boolean"), 1);
    other.removeEventListener("y", () => {}, 1);
    other.dispatchEvent(new Event("y"));
    equal(log.length, 3);
    const order = [];
    const options = new Proxy({}, { get: (_, key) => { order.push(key); return undefined; }, has: () => true });
    other.addEventListener("z", () => {}, options);
    deepEqual(order, ["capture", "once", "passive", "signal"]);
    throws(() => other.addEventListener("z", null, { signal: null }), TypeError);
    const late = { handleEvent: null };
    other.addEventListener("w", late);
    late.handleEvent = () => log.push("looked up when called");
    other.dispatchEvent(new Event("w"));
    equal(log.length, 4);
  },
  "signals: any and timeout": async () => {
    const controller = new AbortController();
    const any = AbortSignal.any([AbortSignal.any([controller.signal]), AbortSignal.timeout(10_000)]);
    const order = [];
    controller.signal.addEventListener("abort", () => order.push("source"));
    any.addEventListener("abort", () => order.push("dependent"));
    controller.abort("why");
    deepEqual([any.aborted, any.reason, ...order], [true, "why", "source", "dependent"]);
    equal(AbortSignal.any([]).aborted, false);
    const timeout = AbortSignal.timeout(1);
    await next(timeout, "abort");
    equal(timeout.reason.name, "TimeoutError");
    for (const wrong of [-1, NaN, Infinity, "x", undefined]) throws(() => AbortSignal.timeout(wrong), TypeError);
  },
  "a broadcast reaches the other channels of its name": async () => {
    const [sender, first, second, stranger] = ["news", "news", "news", "else"].map((name) => new BroadcastChannel(name));
    const log = [];
    for (const [index, channel] of [sender, first, second, stranger].entries()) {
      channel.onmessage = ({ data }) => log.push([index, data]);
    }
    const value = { a: 1 };
    sender.postMessage(value);
    value.a = 2;
    second.close();
    await sleep(5);
    deepEqual(log, [[1, { a: 1 }]]);
    equal(throws(() => sender.postMessage(() => {})).name, "DataCloneError");
    equal(throws(() => second.postMessage(1)).name, "InvalidStateError");
    deepEqual([sender.name, String(sender)], ["news", "[object BroadcastChannel]"]);
    for (const channel of [sender, first, stranger]) channel.close();
  },
};
