// https://nodejs.org/api/worker_threads.html: an isolate has one thread. Channels are those of the web.
import { MessageChannel, MessagePort } from "../dom/message_port.js";
import { EventEmitter } from "./events.js";
import { notImplemented } from "./http_common.js";

export { MessageChannel, MessagePort };
export const SHARE_ENV = Symbol.for("nodejs.worker_threads.SHARE_ENV");
export const isInternalThread = false;
export const isMainThread = true;
export const parentPort = null;
export const resourceLimits = {};
export const threadId = 0;
export const workerData = null;

export class BroadcastChannel {
  constructor() {
    throw notImplemented("BroadcastChannel");
  }
}

export class Worker extends EventEmitter {
  constructor() {
    super();
    throw notImplemented("Worker");
  }

  postMessage() {
    throw notImplemented("Worker.prototype.postMessage");
  }

  postMessageToThread() {
    throw notImplemented("Worker.prototype.postMessageToThread");
  }

  ref() {}

  unref() {}

  async terminate() {
    throw notImplemented("Worker.prototype.terminate");
  }

  async getHeapSnapshot() {
    throw notImplemented("Worker.prototype.getHeapSnapshot");
  }

  async getHeapStatistics() {
    throw notImplemented("Worker.prototype.getHeapStatistics");
  }

  async [Symbol.asyncDispose]() {
    await this.terminate();
  }
}

const environment = new Map();

export function getEnvironmentData(key) {
  return environment.get(key);
}

export function setEnvironmentData(key, value) {
  if (value === undefined) environment.delete(key);
  else environment.set(key, value);
}

export function isMarkedAsUntransferable() {
  return false;
}

export function markAsUntransferable() {}

export function markAsUncloneable() {}

export function moveMessagePortToContext() {
  throw notImplemented("moveMessagePortToContext");
}

export function receiveMessageOnPort() {
  return undefined;
}

export function postMessageToThread() {
  throw notImplemented("postMessageToThread");
}
