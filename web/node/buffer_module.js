// The module `node:buffer`: what buffer.js exports, with INSPECT_MAX_BYTES of the default export as in Node.
// https://nodejs.org/api/buffer.html#bufferinspect_max_bytes
import * as all from "./buffer.js";

const { setInspectMaxBytes, ...shown } = all;

const module = Object.defineProperty({ ...shown }, "INSPECT_MAX_BYTES", {
  get: () => all.INSPECT_MAX_BYTES,
  set: setInspectMaxBytes,
  enumerable: true,
  configurable: true,
});

export const exported = { ...shown, default: module };
