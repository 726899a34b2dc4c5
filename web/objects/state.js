// ctx of a Durable Object: https://developers.cloudflare.com/durable-objects/api/state/
import { callOf } from "../internal/async_context.js";
import { lazy } from "../internal/lazy.js";
import { native } from "../internal/native.js";
import { defineInterface } from "../internal/platform.js";
import { requireArguments } from "../internal/webidl.js";
import { runningCall } from "../worker/call.js";
import { ownExports } from "../worker/context.js";

const OURS = Symbol("ours");
const ABORTED = "Application called abort() to reset Durable Object.";

const api = () => lazy("objects/socket_api.js");

export class DurableObjectState {
  #host;

  constructor(key, host) {
    if (key !== OURS) throw new TypeError("Illegal constructor");
    this.#host = host;
  }

  get id() {
    return this.#host.id;
  }

  get storage() {
    return this.#host.storage;
  }

  get props() {
    return this.#host.props;
  }

  /** Child objects within this one: https://developers.cloudflare.com/dynamic-workers/usage/durable-object-facets/ */
  get facets() {
    this.#host.facets ??= lazy("objects/facets.js").makeFacets(this.#host);
    return this.#host.facets;
  }

  /** Stubs of the worker's own entry points, and namespaces of its classes. */
  get exports() {
    return ownExports();
  }

  /** Keeps the running event open until `promise` is settled. */
  waitUntil(promise) {
    requireArguments(arguments.length, 1, "waitUntil");
    runningCall(callOf(native.getAsyncContext()))?.waitUntil(promise);
  }

  /** Runs `callback` while no other event of the object goes on. If it throws, the object is reset. */
  blockConcurrencyWhile(callback) {
    requireArguments(arguments.length, 1, "blockConcurrencyWhile");
    if (typeof callback !== "function") throw new TypeError("blockConcurrencyWhile: the argument must be a function.");
    return this.#host.block(callback);
  }

  /** Resets the object at once. What it has not committed is lost. */
  abort(reason = undefined, options = undefined) {
    this.#host.abort(reason === undefined ? new Error(ABORTED) : new Error(`${reason}`), options?.retryAlarm !== false);
  }

  // Hibernatable WebSockets: objects/socket_api.js, which is loaded with the first use.

  acceptWebSocket(...args) {
    if (this.#host.depth > 0) throw new Error("Facets cannot accept hibernatable WebSockets: use accept() of the WebSocket.");
    api().acceptWebSocket(this.#host.sockets, ...args);
  }

  getWebSockets(tag = undefined) {
    return api().getWebSockets(this.#host.sockets, tag);
  }

  getTags(...args) {
    return api().getTags(...args);
  }

  setWebSocketAutoResponse(pair = undefined) {
    api().setAutoResponse(this.#host.sockets, pair);
  }

  getWebSocketAutoResponse() {
    return api().getAutoResponse(this.#host.sockets);
  }

  getWebSocketAutoResponseTimestamp(...args) {
    return api().getAutoResponseTimestamp(...args);
  }

  setHibernatableWebSocketEventTimeout(ms = undefined) {
    api().setEventTimeout(this.#host.sockets, ms);
  }

  getHibernatableWebSocketEventTimeout() {
    return this.#host.sockets.getEventTimeout();
  }
}

defineInterface(DurableObjectState, { name: "DurableObjectState" });

export function makeState(host) {
  return new DurableObjectState(OURS, host);
}
