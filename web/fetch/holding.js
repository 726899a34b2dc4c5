// How much of bodies may be in memory at once while they are read whole, over all calls of the worker.
//
// text(), arrayBuffer() and their like hold what has come until the end has come, and then, for a moment, all of it twice. Without a
// bound the body of an endless server would fill the isolate, and end every call in it.
import { native } from "../internal/native.js";

const SHARE = 1 / 3; // of the worker's memory

let limit = 0; // bytes; 0 until it is known
let total = 0; // what all of them hold

function findLimit() {
  const memory = native.memoryLimit();
  if (memory === 0) return Infinity; // there is no worker yet
  return (limit = Math.floor(memory * SHARE));
}

function megabytes(bytes) {
  return `${Math.floor(bytes / 2 ** 20)} MB`;
}

/** What one body holds. */
export class Holding {
  #bytes = 0;

  /** One more chunk. Returns the error if that is more than may be held; then it holds nothing any more. */
  add(bytes) {
    this.#bytes += bytes;
    total += bytes;
    const most = limit || findLimit();
    if (total <= most) return null;
    this.release();
    return new TypeError(
      `The body does not fit: a worker may hold ${megabytes(most)} of bodies that are being read whole ` +
        `(a third of its memory limit of ${megabytes(native.memoryLimit())}). Read it as a stream instead.`,
    );
  }

  release() {
    total -= this.#bytes;
    this.#bytes = 0;
  }
}
