// https://xhr.spec.whatwg.org/#interface-progressevent
import { Event } from "./event.js";
import { defineInterface } from "../internal/platform.js";
import { NO_OPTIONS, requireArguments } from "../internal/webidl.js";

/** https://webidl.spec.whatwg.org/#js-double */
function toDouble(value, where) {
  const number = Number(value);
  if (!Number.isFinite(number)) throw new TypeError(`${where}: the value is not a finite number.`);
  return number;
}

export class ProgressEvent extends Event {
  #lengthComputable;
  #loaded;
  #total;

  constructor(type, init = undefined) {
    requireArguments(arguments.length, 1, "ProgressEvent constructor");
    super(type, init);
    const { lengthComputable = false, loaded = 0, total = 0 } = init ?? NO_OPTIONS;
    this.#lengthComputable = !!lengthComputable;
    this.#loaded = toDouble(loaded, "ProgressEvent constructor");
    this.#total = toDouble(total, "ProgressEvent constructor");
  }

  get lengthComputable() {
    return this.#lengthComputable;
  }

  get loaded() {
    return this.#loaded;
  }

  get total() {
    return this.#total;
  }
}

defineInterface(ProgressEvent);
