// A transform stream that is created on first use as a stream: hashes are rarely used as one, and node:stream is large.
import { lazy } from "../internal/lazy.js";

const STREAMING = [
  "addListener", "destroy", "emit", "end", "on", "once", "pause", "pipe", "push", "read", "removeListener", "resume", "setEncoding",
  "unpipe", "write", Symbol.asyncIterator,
];

/** Makes `Class` such a stream. Its instances have _transform and optionally _flush. */
export function makeLazyTransform(Class) {
  const initialized = new WeakSet();
  for (const name of STREAMING) {
    Object.defineProperty(Class.prototype, name, {
      get() {
        const { Transform } = lazy("node/stream.js");
        if (!(Class.prototype instanceof Transform)) Object.setPrototypeOf(Class.prototype, Transform.prototype);
        if (!initialized.has(this) && this !== Class.prototype) {
          initialized.add(this);
          Transform.call(this);
        }
        return Transform.prototype[name];
      },
      configurable: true,
    });
  }
}
