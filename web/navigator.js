// https://html.spec.whatwg.org/multipage/system-state.html#the-navigator-object
import { fetch } from "#bindings/fetch/fetch.js";
import { callOf } from "./internal/async_context.js";
import { native } from "./internal/native.js";
import { defineInterface } from "./internal/platform.js";
import { illegalConstructor, requireArguments } from "./internal/webidl.js";
import { runningCall } from "./worker/call.js";

const LANGUAGES = Object.freeze(["en"]);
const INTERNAL = Symbol("made by the platform");

export class Navigator {
  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
  }

  /** https://html.spec.whatwg.org/multipage/system-state.html#dom-navigator-useragent: many libraries know workers by this value. */
  get userAgent() {
    return "Cloudflare-Workers";
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

  /** https://w3c.github.io/beacon/#sendbeacon-method: a POST whose answer nobody reads. False if no call is running. */
  sendBeacon(url, data = undefined) {
    requireArguments(arguments.length, 1, "Navigator.sendBeacon");
    const call = runningCall(callOf(native.getAsyncContext()));
    if (call === undefined) return false;
    const sent = fetch(url, { method: "POST", body: data ?? null, keepalive: false });
    call.waitUntil(sent.then((response) => response.body?.cancel(), () => {}));
    return true;
  }
}

defineInterface(Navigator);

export const navigator = new Navigator(INTERNAL);
