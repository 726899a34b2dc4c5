// The body of a fetched response, in the form in which the platform reads bodies: read() until null.
import { callOf } from "#web/internal/async_context.js";
import { native } from "#web/internal/native.js";
import { defineOp } from "#web/internal/ops.js";
import { setLength } from "#web/streams/lengths.js";
import { runningCall } from "#web/worker/call.js";

export const read = defineOp("fetch.read");
const send = defineOp("fetch.send");
const cancel = defineOp("fetch.cancel");

export class FetchedBody {
  #number;
  #call = callOf(native.getAsyncContext());
  #first; // the bytes that came with the head
  #hasEnded = false;
  #next = null; // the pending read: one is always requested ahead
  #failure = null; // { error }
  #isRaw = false;
  #coding;
  #length;
  /** A callback for the moment when the body fails: (error) => void. */
  onBroken = null;
  /** A callback for the moment when the body can no longer fail: () => void. */
  onEnd = null;

  /** `coding` is the content coding in the headers, which reading decodes, "" for none; `length` is Content-Length, or null. */
  constructor(number, first, coding, length) {
    this.#number = number;
    this.#first = first.length > 0 ? first : null;
    this.#coding = coding;
    this.#length = length !== null && /^\d{1,15}$/.test(length) ? Number(length) : undefined;
    if (coding === "") setLength(this, this.#length);
  }

  get coding() {
    return this.#coding;
  }

  /** Before the first read: from now on read() returns the body still encoded, as it arrived. */
  sendEncoded(coding) {
    if (coding === "" || coding !== this.#coding) return false;
    this.#isRaw = true;
    setLength(this, this.#length);
    return true;
  }

  async read() {
    if (this.#failure !== null) throw this.#failure.error;
    if (this.#first !== null) {
      const first = this.#first;
      this.#first = null;
      this.#readAhead();
      return first;
    }
    for (;;) {
      if (this.#hasEnded) return null;
      // A read that was requested ahead gets no reply after the end of its call.
      if (runningCall(this.#call) === undefined) throw new TypeError("The fetch is over: it belongs to another request, which has ended.");
      this.#readAhead();
      const { meta, body } = await this.#next.catch((error) => {
        this.onEnd?.();
        throw this.#failure === null ? error : this.#failure.error;
      });
      this.#next = null;
      if (this.#failure !== null) throw this.#failure.error;
      if (meta.ended) this.#end();
      if (body.length > 0) {
        this.#readAhead();
        return body;
      }
    }
  }

  /** Before the first read: sends all of it as the body of the response that has just begun, past the engine. Resolves at its end. */
  async pipe() {
    const first = this.#first;
    this.#first = null;
    await send({ fetch: this.#number, raw: this.#isRaw }, first);
    this.#end();
  }

  #end() {
    this.#hasEnded = true;
    this.onEnd?.();
  }

  /** Whether pipe() is possible. */
  get isUntouched() {
    return this.#next === null && !this.#hasEnded && this.#failure === null;
  }

  #readAhead() {
    if (this.#hasEnded || this.#next !== null) return;
    this.#next = read({ fetch: this.#number, raw: this.#isRaw });
    this.#next.catch((error) => this.onBroken?.(this.#failure === null ? error : this.#failure.error));
  }

  /** The worker does not need the rest. */
  cancel() {
    if (this.#hasEnded) return;
    this.#end();
    this.#first = null;
    FetchedBody.drop(this.#number);
  }

  /** { error } for the reader, or null. */
  get failure() {
    return this.#failure;
  }

  /** The signal of the request has fired: reads fail with `error`. */
  abort(error) {
    if (this.#hasEnded && this.#first === null) return;
    this.#failure = { error };
    this.onBroken?.(error);
    FetchedBody.drop(this.#number);
  }

  static drop(number) {
    cancel({ fetch: number }).catch(() => {});
  }
}
