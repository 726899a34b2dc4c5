// The interfaces of the global object. https://html.spec.whatwg.org/multipage/workers.html#the-workerglobalscope-common-interface
import { EventTarget, HandlerSlot } from "./event_target.js";
import { defineInterface } from "../internal/platform.js";
import { illegalConstructor } from "../internal/webidl.js";

export class WorkerGlobalScope extends EventTarget {
  constructor() {
    throw illegalConstructor();
  }
}

defineInterface(WorkerGlobalScope);

/** https://w3c.github.io/ServiceWorker/#serviceworkerglobalscope-interface */
export class ServiceWorkerGlobalScope extends WorkerGlobalScope {}

defineInterface(ServiceWorkerGlobalScope);

/** An event handler attribute of the global object, such as `onunhandledrejection`. */
export function makeGlobalHandler(scope, type) {
  let slot = null;
  return {
    get: () => (slot === null ? null : slot.get()),
    set: (handler) => {
      slot ??= new HandlerSlot(type);
      slot.set(scope, handler);
    },
  };
}
