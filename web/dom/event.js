// https://dom.spec.whatwg.org/#interface-event
import { monotonicNow } from "../internal/clock.js";
import { defineConstants, defineInterface } from "../internal/platform.js";
import { NO_OPTIONS, requireArguments, toDictionary, toDOMString, toUnsigned } from "../internal/webidl.js";

const { defineProperty } = Object;

let isTrusted; // the descriptor of the attribute

const NONE = 0;
const AT_TARGET = 2;

// Operations of the dispatch algorithm on an event. Set by the class below, because they use its private fields.
export let beginDispatch;
export let endDispatch;
export let isStopped;
export let isPropagationStopped;
export let setPassive;
export let isDispatchable;
export let trust;
export let distrust;

export class Event {
  #type;
  #bubbles = false;
  #cancelable = false;
  #composed = false;
  #initialized = true;
  #dispatching = false;
  #target = null;
  #currentTarget = null;
  #stopPropagation = false;
  #stopImmediate = false;
  #canceled = false;
  #passive = false;
  #trusted = false;
  #timeStamp = monotonicNow();

  constructor(type, init = undefined) {
    requireArguments(arguments.length, 1, "Event constructor");
    defineProperty(this, "isTrusted", isTrusted);
    this.#type = toDOMString(type);
    if (init === undefined) return;
    const { bubbles, cancelable, composed } = toDictionary(init, "Event constructor");
    this.#bubbles = !!bubbles;
    this.#cancelable = !!cancelable;
    this.#composed = !!composed;
  }

  get type() {
    return this.#type;
  }

  get target() {
    return this.#target;
  }

  get srcElement() {
    return this.#target;
  }

  get currentTarget() {
    return this.#currentTarget;
  }

  /** https://dom.spec.whatwg.org/#dom-event-composedpath: there is no tree, so the path is the target alone. */
  composedPath() {
    return this.#currentTarget === null ? [] : [this.#currentTarget];
  }

  get eventPhase() {
    return this.#dispatching ? AT_TARGET : NONE;
  }

  stopPropagation() {
    this.#stopPropagation = true;
  }

  get cancelBubble() {
    return this.#stopPropagation;
  }

  set cancelBubble(value) {
    this.#stopPropagation ||= !!value;
  }

  stopImmediatePropagation() {
    this.#stopPropagation = true;
    this.#stopImmediate = true;
  }

  get bubbles() {
    return this.#bubbles;
  }

  get cancelable() {
    return this.#cancelable;
  }

  get returnValue() {
    return !this.#canceled;
  }

  set returnValue(value) {
    if (!value) this.preventDefault();
  }

  /** https://dom.spec.whatwg.org/#set-the-canceled-flag */
  preventDefault() {
    if (this.#cancelable && !this.#passive) this.#canceled = true;
  }

  get defaultPrevented() {
    return this.#canceled;
  }

  get composed() {
    return this.#composed;
  }

  get timeStamp() {
    return this.#timeStamp;
  }

  /** https://dom.spec.whatwg.org/#dom-event-initevent */
  initEvent(type, bubbles = false, cancelable = false) {
    requireArguments(arguments.length, 1, "Event.initEvent");
    if (this.#dispatching) return;
    this.#type = toDOMString(type);
    this.#bubbles = !!bubbles;
    this.#cancelable = !!cancelable;
    this.#initialized = true;
    this.#stopPropagation = this.#stopImmediate = this.#canceled = this.#trusted = false;
    this.#target = null;
  }

  static {
    // [LegacyUnforgeable]: every event has this attribute as an own property that cannot be changed.
    // https://webidl.spec.whatwg.org/#LegacyUnforgeable
    isTrusted = {
      __proto__: null,
      get: Object.getOwnPropertyDescriptor({ get isTrusted() { return this.#trusted; } }, "isTrusted").get,
      enumerable: true,
      configurable: false,
    };
    isDispatchable = (event) => event.#initialized && !event.#dispatching;
    beginDispatch = (event, target) => {
      event.#dispatching = true;
      event.#target = target;
      event.#currentTarget = target;
    };
    endDispatch = (event) => {
      event.#dispatching = false;
      event.#currentTarget = null;
      event.#stopPropagation = event.#stopImmediate = false;
      return !event.#canceled;
    };
    isStopped = (event) => event.#stopImmediate;
    isPropagationStopped = (event) => event.#stopPropagation;
    setPassive = (event, passive) => {
      event.#passive = passive;
    };
    trust = (event) => {
      event.#trusted = true;
      return event;
    };
    distrust = (event) => {
      event.#trusted = false;
    };
  }
}

defineInterface(Event);
defineConstants(Event, { NONE, CAPTURING_PHASE: 1, AT_TARGET, BUBBLING_PHASE: 3 });

/** https://dom.spec.whatwg.org/#interface-customevent */
export class CustomEvent extends Event {
  #detail;

  constructor(type, init = undefined) {
    requireArguments(arguments.length, 1, "CustomEvent constructor");
    super(type, init);
    const { detail = null } = init ?? NO_OPTIONS;
    this.#detail = detail;
  }

  get detail() {
    return this.#detail;
  }

  /** https://dom.spec.whatwg.org/#dom-customevent-initcustomevent */
  initCustomEvent(type, bubbles = false, cancelable = false, detail = null) {
    requireArguments(arguments.length, 1, "CustomEvent.initCustomEvent");
    this.#detail; // a brand check before anything else
    if (this.eventPhase !== NONE) return;
    this.initEvent(type, bubbles, cancelable);
    this.#detail = detail;
  }
}

defineInterface(CustomEvent);

/** https://html.spec.whatwg.org/multipage/webappapis.html#errorevent */
export class ErrorEvent extends Event {
  #message;
  #filename;
  #lineno;
  #colno;
  #error;

  constructor(type, init = undefined) {
    requireArguments(arguments.length, 1, "ErrorEvent constructor");
    super(type, init);
    const { message = "", filename = "", lineno = 0, colno = 0, error } = init ?? NO_OPTIONS;
    this.#message = toDOMString(message);
    this.#filename = toDOMString(filename);
    this.#lineno = toUnsigned(lineno, 32);
    this.#colno = toUnsigned(colno, 32);
    this.#error = error;
  }

  get message() {
    return this.#message;
  }

  get filename() {
    return this.#filename;
  }

  get lineno() {
    return this.#lineno;
  }

  get colno() {
    return this.#colno;
  }

  get error() {
    return this.#error;
  }
}

defineInterface(ErrorEvent);

/** https://html.spec.whatwg.org/multipage/webappapis.html#promiserejectionevent */
export class PromiseRejectionEvent extends Event {
  #promise;
  #reason;

  constructor(type, init) {
    requireArguments(arguments.length, 2, "PromiseRejectionEvent constructor");
    super(type, init);
    const { promise, reason } = toDictionary(init, "PromiseRejectionEvent constructor");
    if (promise === null || typeof promise !== "object") {
      throw new TypeError("PromiseRejectionEvent constructor: promise must be an object.");
    }
    this.#promise = promise;
    this.#reason = reason;
  }

  get promise() {
    return this.#promise;
  }

  get reason() {
    return this.#reason;
  }
}

defineInterface(PromiseRejectionEvent);
