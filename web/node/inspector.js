// https://nodejs.org/api/inspector.html: a worker cannot be inspected from within.
import { EventEmitter } from "./events.js";
import { notImplemented } from "./http_common.js";

export class Session extends EventEmitter {
  constructor() {
    super();
    throw notImplemented("inspector.Session");
  }

  connect() {
    throw notImplemented("inspector.Session.connect");
  }

  connectToMainThread() {
    throw notImplemented("inspector.Session.connectToMainThread");
  }

  disconnect() {
    throw notImplemented("inspector.Session.disconnect");
  }

  post() {
    throw notImplemented("inspector.Session.post");
  }
}

export function close() {}

export function open() {
  return { async [Symbol.dispose]() {} };
}

export function url() {
  return undefined;
}

export function waitForDebugger() {}

/** Writes to no one: the log of the worker is the global console. */
export const console = {};
for (const name of [
  "debug", "error", "info", "log", "warn", "dir", "dirxml", "table", "trace", "group", "groupCollapsed", "groupEnd", "clear", "count",
  "countReset", "assert", "profile", "profileEnd", "time", "timeLog", "timeStamp", "timeEnd", "context", "createTask", "memory",
]) {
  console[name] = () => {};
}

const refusing = (domain, names) =>
  Object.fromEntries(
    names.map((name) => [
      name,
      () => {
        throw notImplemented(`inspector.${domain}.${name}`);
      },
    ]),
  );

export const Network = refusing("Network", [
  "requestWillBeSent", "dataReceived", "dataSent", "responseReceived", "loadingFinished", "loadingFailed", "webSocketCreated",
  "webSocketHandshakeResponseReceived", "webSocketClosed",
]);
export const NetworkResources = refusing("NetworkResources", ["put"]);
