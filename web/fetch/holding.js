// Bounds the memory for bodies that are read whole, over all calls of the worker.
//
// text(), arrayBuffer() and similar methods keep all chunks until the end, and then for a moment twice. Without a bound, an endless
// response could fill the isolate and end all its calls.
import { native } from "../internal/native.js";

const SHARE = 1 / 3; // of the worker's memory

let limit = 0; // bytes; 0 while unknown
let total = 0; // bytes held for all bodies

function findLimit() {
  const memory = native.memoryLimit();
  if (memory === 0) return Infinity; // no worker is loaded yet
  return (limit = Math.floor(memory * SHARE));
}

function megabytes(bytes) {
  return `${Math.floor(bytes / 2 ** 20)} MB`;
}

/** The bytes held for one body. */
export class Holding {
  #bytes = 0;

  /** Adds a chunk. If that exceeds the limit, releases everything and returns the error. */
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
