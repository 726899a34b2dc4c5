// https://html.spec.whatwg.org/multipage/system-state.html#the-navigator-object
import { defineInterface } from "./internal/platform.js";
import { illegalConstructor } from "./internal/webidl.js";

const INTERNAL = Symbol("made by the platform");

export class Navigator {
  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
  }

  /** https://html.spec.whatwg.org/multipage/system-state.html#dom-navigator-useragent */
  get userAgent() {
    return "Atoll";
  }

  /** https://html.spec.whatwg.org/multipage/system-state.html#dom-navigator-language */
  get language() {
    return "en";
  }

  /** https://html.spec.whatwg.org/multipage/workers.html#dom-navigator-hardwareconcurrency: an isolate has one thread. */
  get hardwareConcurrency() {
    return 1;
  }
}

defineInterface(Navigator);

export const navigator = new Navigator(INTERNAL);
