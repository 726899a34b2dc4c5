// Events, aborting, exceptions: https://dom.spec.whatwg.org/ and https://webidl.spec.whatwg.org/#idl-DOMException

interface EventInit {
  bubbles?: boolean;
  cancelable?: boolean;
  composed?: boolean;
}

declare class Event {
  constructor(type: string, init?: EventInit);
  static readonly NONE: 0;
  static readonly CAPTURING_PHASE: 1;
  static readonly AT_TARGET: 2;
  static readonly BUBBLING_PHASE: 3;
  readonly NONE: 0;
  readonly CAPTURING_PHASE: 1;
  readonly AT_TARGET: 2;
  readonly BUBBLING_PHASE: 3;
  readonly type: string;
  readonly target: EventTarget | null;
  /** @deprecated Use `target`. */
  readonly srcElement: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly eventPhase: number;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly composed: boolean;
  readonly defaultPrevented: boolean;
  readonly timeStamp: number;
  readonly isTrusted: boolean;
  /** @deprecated Use `stopPropagation()`. */
  cancelBubble: boolean;
  /** @deprecated Use `defaultPrevented`. */
  returnValue: boolean;
  composedPath(): EventTarget[];
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
  /** @deprecated Use the constructor. */
  initEvent(type: string, bubbles?: boolean, cancelable?: boolean): void;
}

declare class CustomEvent<Detail = any> extends Event {
  constructor(type: string, init?: EventInit & { detail?: Detail });
  readonly detail: Detail;
  /** @deprecated Use the constructor. */
  initCustomEvent(type: string, bubbles?: boolean, cancelable?: boolean, detail?: Detail): void;
}

interface AddEventListenerOptions {
  capture?: boolean;
  once?: boolean;
  passive?: boolean;
  signal?: AbortSignal;
}

type EventListenerOf<E extends Event> = ((event: E) => unknown) | { handleEvent(event: E): unknown };
type EventHandlerOf<Target, E extends Event> = ((this: Target, event: E) => unknown) | null;

/** `Events` maps the types of events to their classes; other types are plain events. */
declare class EventTarget<Events extends Record<string, Event> = Record<string, Event>> {
  constructor();
  addEventListener<Type extends keyof Events>(
    type: Type,
    listener: EventListenerOf<Events[Type]> | null,
    options?: AddEventListenerOptions | boolean,
  ): void;
  removeEventListener<Type extends keyof Events>(
    type: Type,
    listener: EventListenerOf<Events[Type]> | null,
    options?: { capture?: boolean } | boolean,
  ): void;
  dispatchEvent(event: Event): boolean;
  when<Type extends keyof Events>(type: Type, options?: { capture?: boolean; passive?: boolean }): Observable<Events[Type]>;
}

interface AbortSignalEvents extends Record<string, Event> {
  abort: Event;
}

declare class AbortSignal extends EventTarget<AbortSignalEvents> {
  private constructor();
  static abort(reason?: any): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  static timeout(milliseconds: number): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: EventHandlerOf<AbortSignal, Event>;
  throwIfAborted(): void;
  addEventListener<Type extends keyof AbortSignalEvents>(
    type: Type,
    listener: EventListenerOf<AbortSignalEvents[Type]> | null,
    options?: AddEventListenerOptions | boolean,
  ): void;
  removeEventListener<Type extends keyof AbortSignalEvents>(
    type: Type,
    listener: EventListenerOf<AbortSignalEvents[Type]> | null,
    options?: { capture?: boolean } | boolean,
  ): void;
}

declare class AbortController {
  constructor();
  readonly signal: AbortSignal;
  abort(reason?: any): void;
}

declare class DOMException extends Error {
  constructor(message?: string, nameOrOptions?: string | { name?: string; cause?: unknown });
  readonly name: string;
  readonly message: string;
  /** @deprecated Use `name`. */
  readonly code: number;
  static readonly INDEX_SIZE_ERR: 1;
  static readonly DOMSTRING_SIZE_ERR: 2;
  static readonly HIERARCHY_REQUEST_ERR: 3;
  static readonly WRONG_DOCUMENT_ERR: 4;
  static readonly INVALID_CHARACTER_ERR: 5;
  static readonly NO_DATA_ALLOWED_ERR: 6;
  static readonly NO_MODIFICATION_ALLOWED_ERR: 7;
  static readonly NOT_FOUND_ERR: 8;
  static readonly NOT_SUPPORTED_ERR: 9;
  static readonly INUSE_ATTRIBUTE_ERR: 10;
  static readonly INVALID_STATE_ERR: 11;
  static readonly SYNTAX_ERR: 12;
  static readonly INVALID_MODIFICATION_ERR: 13;
  static readonly NAMESPACE_ERR: 14;
  static readonly INVALID_ACCESS_ERR: 15;
  static readonly VALIDATION_ERR: 16;
  static readonly TYPE_MISMATCH_ERR: 17;
  static readonly SECURITY_ERR: 18;
  static readonly NETWORK_ERR: 19;
  static readonly ABORT_ERR: 20;
  static readonly URL_MISMATCH_ERR: 21;
  static readonly QUOTA_EXCEEDED_ERR: 22;
  static readonly TIMEOUT_ERR: 23;
  static readonly INVALID_NODE_TYPE_ERR: 24;
  static readonly DATA_CLONE_ERR: 25;
  readonly INDEX_SIZE_ERR: 1;
  readonly DOMSTRING_SIZE_ERR: 2;
  readonly HIERARCHY_REQUEST_ERR: 3;
  readonly WRONG_DOCUMENT_ERR: 4;
  readonly INVALID_CHARACTER_ERR: 5;
  readonly NO_DATA_ALLOWED_ERR: 6;
  readonly NO_MODIFICATION_ALLOWED_ERR: 7;
  readonly NOT_FOUND_ERR: 8;
  readonly NOT_SUPPORTED_ERR: 9;
  readonly INUSE_ATTRIBUTE_ERR: 10;
  readonly INVALID_STATE_ERR: 11;
  readonly SYNTAX_ERR: 12;
  readonly INVALID_MODIFICATION_ERR: 13;
  readonly NAMESPACE_ERR: 14;
  readonly INVALID_ACCESS_ERR: 15;
  readonly VALIDATION_ERR: 16;
  readonly TYPE_MISMATCH_ERR: 17;
  readonly SECURITY_ERR: 18;
  readonly NETWORK_ERR: 19;
  readonly ABORT_ERR: 20;
  readonly URL_MISMATCH_ERR: 21;
  readonly QUOTA_EXCEEDED_ERR: 22;
  readonly TIMEOUT_ERR: 23;
  readonly INVALID_NODE_TYPE_ERR: 24;
  readonly DATA_CLONE_ERR: 25;
}

declare class QuotaExceededError extends DOMException {
  constructor(message?: string, options?: { quota?: number; requested?: number });
  readonly quota: number | null;
  readonly requested: number | null;
}

interface ErrorEventInit extends EventInit {
  message?: string;
  filename?: string;
  lineno?: number;
  colno?: number;
  error?: any;
}

declare class ErrorEvent extends Event {
  constructor(type: string, init?: ErrorEventInit);
  readonly message: string;
  readonly filename: string;
  readonly lineno: number;
  readonly colno: number;
  readonly error: any;
}

declare class PromiseRejectionEvent extends Event {
  constructor(type: string, init: EventInit & { promise: Promise<any>; reason?: any });
  readonly promise: Promise<any>;
  readonly reason: any;
}

declare class ProgressEvent extends Event {
  constructor(type: string, init?: EventInit & { lengthComputable?: boolean; loaded?: number; total?: number });
  readonly lengthComputable: boolean;
  readonly loaded: number;
  readonly total: number;
}

// Messages: https://html.spec.whatwg.org/multipage/web-messaging.html

type Transferable = ArrayBuffer | MessagePort | ReadableStream | WritableStream | TransformStream;

interface StructuredSerializeOptions {
  transfer?: Transferable[];
}

interface MessageEventInit<Data = any> extends EventInit {
  data?: Data;
  origin?: string;
  lastEventId?: string;
  source?: MessagePort | null;
  ports?: MessagePort[];
}

declare class MessageEvent<Data = any> extends Event {
  constructor(type: string, init?: MessageEventInit<Data>);
  readonly data: Data;
  readonly origin: string;
  readonly lastEventId: string;
  readonly source: MessagePort | null;
  readonly ports: readonly MessagePort[];
  /** @deprecated Use the constructor. */
  initMessageEvent(
    type: string,
    bubbles?: boolean,
    cancelable?: boolean,
    data?: Data,
    origin?: string,
    lastEventId?: string,
    source?: MessagePort | null,
    ports?: MessagePort[],
  ): void;
}

interface MessagePortEvents extends Record<string, Event> {
  message: MessageEvent;
  messageerror: MessageEvent;
  close: Event;
}

declare class MessagePort extends EventTarget<MessagePortEvents> {
  private constructor();
  onmessage: EventHandlerOf<MessagePort, MessageEvent>;
  onmessageerror: EventHandlerOf<MessagePort, MessageEvent>;
  onclose: EventHandlerOf<MessagePort, Event>;
  postMessage(message: any, transferOrOptions?: Transferable[] | StructuredSerializeOptions): void;
  start(): void;
  close(): void;
}

declare class MessageChannel {
  constructor();
  readonly port1: MessagePort;
  readonly port2: MessagePort;
}

interface BroadcastChannelEvents extends Record<string, Event> {
  message: MessageEvent;
  messageerror: MessageEvent;
}

declare class BroadcastChannel extends EventTarget<BroadcastChannelEvents> {
  constructor(name: string);
  readonly name: string;
  onmessage: EventHandlerOf<BroadcastChannel, MessageEvent>;
  onmessageerror: EventHandlerOf<BroadcastChannel, MessageEvent>;
  postMessage(message: any): void;
  close(): void;
}

declare function structuredClone<Value>(value: Value, options?: StructuredSerializeOptions): Value;

// https://html.spec.whatwg.org/multipage/server-sent-events.html and https://developers.cloudflare.com/workers/runtime-apis/eventsource/

interface EventSourceEvents extends Record<string, Event> {
  open: Event;
  message: MessageEvent<string>;
  error: ErrorEvent;
}

declare class EventSource extends EventTarget<EventSourceEvents> {
  constructor(url: string | URL, options?: { withCredentials?: boolean; fetcher?: { fetch: typeof fetch } });
  /** The events of a stream that is there already, such as the body of a response. */
  static from(stream: ReadableStream): EventSource;
  static readonly CONNECTING: 0;
  static readonly OPEN: 1;
  static readonly CLOSED: 2;
  readonly CONNECTING: 0;
  readonly OPEN: 1;
  readonly CLOSED: 2;
  readonly url: string;
  readonly withCredentials: boolean;
  readonly readyState: number;
  onopen: EventHandlerOf<EventSource, Event>;
  onmessage: EventHandlerOf<EventSource, MessageEvent<string>>;
  onerror: EventHandlerOf<EventSource, ErrorEvent>;
  close(): void;
}

// WebSockets: https://websockets.spec.whatwg.org/ and https://developers.cloudflare.com/workers/runtime-apis/websockets/

declare class CloseEvent extends Event {
  constructor(type: string, init?: EventInit & { wasClean?: boolean; code?: number; reason?: string });
  readonly wasClean: boolean;
  readonly code: number;
  readonly reason: string;
}

interface WebSocketEvents extends Record<string, Event> {
  open: Event;
  message: MessageEvent<string | ArrayBuffer | Blob>;
  close: CloseEvent;
  error: ErrorEvent;
}

declare class WebSocket extends EventTarget<WebSocketEvents> {
  constructor(url: string | URL, protocols?: string | string[]);
  static readonly CONNECTING: 0;
  static readonly OPEN: 1;
  static readonly CLOSING: 2;
  static readonly CLOSED: 3;
  static readonly READY_STATE_CONNECTING: 0;
  static readonly READY_STATE_OPEN: 1;
  static readonly READY_STATE_CLOSING: 2;
  static readonly READY_STATE_CLOSED: 3;
  readonly CONNECTING: 0;
  readonly OPEN: 1;
  readonly CLOSING: 2;
  readonly CLOSED: 3;
  readonly READY_STATE_CONNECTING: 0;
  readonly READY_STATE_OPEN: 1;
  readonly READY_STATE_CLOSING: 2;
  readonly READY_STATE_CLOSED: 3;
  readonly url: string;
  readonly protocol: string;
  readonly extensions: string;
  readonly readyState: number;
  readonly bufferedAmount: number;
  binaryType: "arraybuffer" | "blob";
  onopen: EventHandlerOf<WebSocket, Event>;
  onmessage: EventHandlerOf<WebSocket, WebSocketEvents["message"]>;
  onclose: EventHandlerOf<WebSocket, CloseEvent>;
  onerror: EventHandlerOf<WebSocket, ErrorEvent>;
  /** Begin to deliver messages to this end of a WebSocketPair. */
  accept(): void;
  send(message: string | ArrayBuffer | ArrayBufferView): void;
  close(code?: number, reason?: string): void;
  /** Keep a value with the socket, also while it hibernates. At most 16,384 bytes. */
  serializeAttachment(value: unknown): void;
  deserializeAttachment(): any;
}

/** For ctx.setWebSocketAutoResponse() of a Durable Object. */
declare class WebSocketRequestResponsePair {
  constructor(request: string, response: string);
  readonly request: string;
  readonly response: string;
}

declare const WebSocketPair: {
  prototype: object;
  new (): { 0: WebSocket; 1: WebSocket; [Symbol.iterator](): IterableIterator<WebSocket> };
};
