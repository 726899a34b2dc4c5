// Connections of Durable Objects live as long as they are open, not only as long as the call that opened them.
//
// Ops belong to a call, and so does what they open. The call that opened a connection of an object stays open with it, after its
// response, and keeps the object from eviction. Other calls of the object may use the connection: their ops run in that call.
// Outside of objects a connection ends with its call.
import { callOf, inCall, isolated } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { runningCall } from "../worker/call.js";

const current = () => callOf(native.getAsyncContext());

export class ConnectionCall {
  #id = current();
  #call = null; // while it is kept open

  get isThere() {
    return this.#id !== undefined;
  }

  /** Whether the running code may use the connection: it belongs to the same call, or to the same object. */
  get isOurs() {
    const id = current();
    if (id === this.#id) return true;
    const owner = runningCall(this.#id)?.owner ?? null;
    return owner !== null && runningCall(id)?.owner === owner;
  }

  /** Runs `body` in the call that the connection belongs to. */
  run(body) {
    if (current() === this.#id) return body();
    return isolated(() => {
      native.setAsyncContext(inCall(native.getAsyncContext(), this.#id));
      return body();
    });
  }

  /** The connection is in use: if an object has opened it, its call stays open until `release()`. */
  hold() {
    const call = runningCall(this.#id);
    if (this.#call !== null || call === undefined || call.owner === null) return;
    this.#call = call;
    call.hold();
  }

  release() {
    const call = this.#call;
    this.#call = null;
    call?.letGo();
  }
}
