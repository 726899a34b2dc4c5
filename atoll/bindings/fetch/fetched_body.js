// The body of a response that fetch() brought, as the platform reads bodies: read() until null.
import { defineOp } from "#web/internal/ops.js";
import { setLength } from "#web/streams/lengths.js";

export const read = defineOp("fetch.read");
const send = defineOp("fetch.send");
const cancel = defineOp("fetch.cancel");

export class FetchedBody {
  #number;
  #first; // what came with the head
  #hasEnded = false;
  #next = null; // the read under way: one is always asked for ahead
  #failure = null; // { error }
  #isRaw = false;
  #coding;
  #length;
  /** Set by whoever must hear at once that nothing more will come: (error) => void. */
  onBroken = null;
  /** Set by whoever wants to know that nothing can break any more: () => void. */
  onEnd = null;

  /** `coding` is the content coding that the headers name and reading undoes, "" for none; `length` what they say of it, or null. */
  constructor(number, first, coding, length) {
    this.#number = number;
    this.#first = first.length > 0 ? first : null;
    this.#coding = coding;
    this.#length = length !== null && /^\d{1,15}$/.test(length) ? Number(length) : undefined;
    if (coding === "") setLength(this, this.#length);
  }

  /** Nobody has read yet, and it may leave as it came, in the coding it came in: read() gives just that from now on. */
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

  /** Nobody has read yet: all of it goes out as the body of the response that has just begun, past the engine. Resolves at its end. */
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

  /** Whether pipe() can do it. */
  get isUntouched() {
    return this.#next === null && !this.#hasEnded && this.#failure === null;
  }

  #readAhead() {
    if (this.#hasEnded || this.#next !== null) return;
    this.#next = read({ fetch: this.#number, raw: this.#isRaw });
    this.#next.catch((error) => this.onBroken?.(this.#failure === null ? error : this.#failure.error));
  }

  /** The worker does not want the rest. */
  cancel() {
    if (this.#hasEnded) return;
    this.#end();
    this.#first = null;
    FetchedBody.drop(this.#number);
  }

  /** { error } that whoever reads gets, or null. */
  get failure() {
    return this.#failure;
  }

  /** The signal of the request says so: whoever reads gets `error`. */
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
