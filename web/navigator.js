// https://html.spec.whatwg.org/multipage/system-state.html#the-navigator-object
import { defineInterface } from "./internal/platform.js";
import { illegalConstructor } from "./internal/webidl.js";

const LANGUAGES = Object.freeze(["en"]);
const INTERNAL = Symbol("made by the platform");

export class Navigator {
  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
  }

  /**
   * https://html.spec.whatwg.org/multipage/system-state.html#dom-navigator-useragent. The second part is for packages such as zod,
   * which check for that name to know that only top-level code may evaluate strings.
   */
  get userAgent() {
    return "Atoll (like Cloudflare-Workers)";
  }

  /** https://html.spec.whatwg.org/multipage/system-state.html#client-identification: the standard fixes these values. */
  get appCodeName() {
    return "Mozilla";
  }

  get appName() {
    return "Netscape";
  }

  get appVersion() {
    return "4.0 (Atoll)";
  }

  get platform() {
    return "";
  }

  get product() {
    return "Gecko";
  }

  /** https://html.spec.whatwg.org/multipage/system-state.html#dom-navigator-language */
  get language() {
    return LANGUAGES[0];
  }

  get languages() {
    return LANGUAGES;
  }

  /** https://html.spec.whatwg.org/multipage/workers.html#dom-navigator-hardwareconcurrency: an isolate has one thread. */
  get hardwareConcurrency() {
    return 1;
  }
}

defineInterface(Navigator);

export const navigator = new Navigator(INTERNAL);
