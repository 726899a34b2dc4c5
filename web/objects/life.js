// Timers of an object live as long as the object, not only as long as the call that set them.
//
// A timer needs a call: its CPU time is charged to one, and ops belong to one. When a call ends and leaves timers behind, the
// object asks Python for a call of its own, which takes them over and stays open while there are some. It keeps the object
// from eviction.
import { isolated } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { adoptTimers, startTimer } from "../timers.js";

const TIMERS = 7; // what a SOCKET frame is about (protocol/wire.toml)
const LOOK_MS = 1000; // between two looks whether timers are left
const NOTHING = new Uint8Array(0);

export class ObjectLife {
  #slot;
  #call = null; // that has the timers
  #leaving = new Set(); // calls that are over and wait for it
  #isAsked = false;

  constructor(slot) {
    this.#slot = slot;
  }

  /** Whether a call that is over may end. If not, it ends once its timers have another call. */
  mayEnd(call) {
    if (call === this.#call || !native.hasTimers(call.id)) return true;
    if (this.#call !== null) {
      this.#take(call);
      return true;
    }
    this.#leaving.add(call);
    if (!this.#isAsked) {
      this.#isAsked = true;
      native.sendSocket(this.#slot, TIMERS, 0, NOTHING);
    }
    return false;
  }

  #take(call) {
    isolated(() => {
      native.setAsyncContext(this.#call.id);
      adoptTimers(call.id);
    });
  }

  /** The call that Python sends for it. */
  begin(call) {
    this.#isAsked = false;
    if (this.#call !== null) return;
    this.#call = call;
    const { onOver } = call;
    call.onOver = () => {
      onOver?.();
      this.#call = null;
    };
    native.beginStream(call.id, 101, ""); // as a WebSocket it may stay open for days, and each entry has the whole CPU limit
    const leaving = [...this.#leaving];
    this.#leaving.clear();
    for (const each of leaving) {
      this.#take(each);
      each.finishIfDone();
    }
    this.#watch(call);
  }

  #watch(call) {
    startTimer(() => {
      if (native.hasTimers(call.id) || native.isBusy(call.id) || call.waits + call.held > 0) {
        this.#watch(call);
        return;
      }
      native.endBody(call.id);
      call.answered = true;
      call.finishIfDone();
    }, LOOK_MS);
  }
}
