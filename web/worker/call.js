// One call from its first frame to its last: run the handler, send the response, wait for waitUntil().
import { createSignal, signalAbort } from "../dom/abort.js";
import { DOMException } from "../dom/exception.js";
import { makeIncomingRequest } from "../fetch/incoming.js";
import { describeResponse, isResponse } from "../fetch/outgoing.js";
import { inspect } from "../internal/show.js";
import { lazy } from "../internal/lazy.js";
import { native } from "../internal/native.js";
import { encodeText } from "../internal/text.js";
import { ErrorCode, Level } from "../internal/wire.gen.js";
import { lengthOfStream } from "../streams/lengths.js";
import { isReadableStream } from "../streams/streams.js";
import { dropTimers } from "../timers.js";
import { IncomingBody, OutgoingBody, sourceOfBytes, sourceOfStream } from "./bodies.js";
import { isOn, whenFlagsAreSet } from "./compatibility.js";
import { passToOrigin } from "./origin.js";

const MAX_RESPONSE_HEAD = 128 * 1024;
const UPGRADE = /\nupgrade:[ \t]*websocket[ \t]*\r/i;

let abortsSignals = true; // of requests whose client has gone
whenFlagsAreSet(() => {
  abortsSignals = isOn("enable_request_signal");
});

// Open calls by id, so that the engine can refer to them. A call that responds immediately is never added.
const calls = new Map();

let latest = null; // the call that started last; only this one may be open without being in `calls`, until its handler returns

export function findCall(id) {
  return calls.get(id);
}

/** The call with this id if it is still open, for code that runs in it. */
export function runningCall(id) {
  if (calls.has(id)) return calls.get(id);
  return latest !== null && latest.id === id && !latest.isOver() ? latest : undefined;
}

export class Call {
  constructor(id) {
    this.id = id;
    this.incoming = null; // IncomingBody of a streamed request body
    this.outgoing = null; // OutgoingBody of a streamed response body
    this.signal = null;
    this.waits = 0; // unsettled waitUntil() promises
    this.held = 0; // open connections of a Durable Object (sockets/holding.js)
    this.answered = false; // nothing more is sent to the client
    this.canceled = false;
    this.head = ""; // head of the request
    this.isHead = false; // a HEAD request: the response is sent without its body
    this.isUpgrade = false; // a WebSocket upgrade: messages arrive in place of a request body
    this.socket = null; // SocketPort of a call that became a WebSocket
    this.rejected = null; // { error } of the first rejected waitUntil() promise
    this.said = undefined; // what an event's handler has reported so far; sent to Python even if the handler throws
    this.onOver = null; // called when the call is over
    this.mayEnd = null; // () => false if something of it must go to another call first, which then calls finishIfDone()
    this.rpc = null; // Channel of its RPC sessions
    this.isFromNetworks = undefined; // whether the request came through other networks; undefined: not looked at yet
    this.files = null; // of node:fs
    this.owner = null; // what its files belong to, if not to the call: an object
    this.passesThrough = false; // an exception sends the request to the origin
    this.request = null; // that request
    this.onIdle = null; // called when no waitUntil() promise is pending
    this.isPrompt = false; // an event that is answered when its handler is done, before its waitUntil() promises
  }

  /** `run(request, call)` is the worker's code. This method never throws what that code throws. */
  start(run, head, body, streaming) {
    if (streaming) {
      this.incoming = new IncomingBody(this.id, head);
      if (body !== null) this.incoming.push(body);
    }
    this.head = head;
    this.isHead = head.startsWith("HEAD ");
    this.isUpgrade = streaming && UPGRADE.test(head);
    const content = this.isUpgrade ? null : streaming ? this.incoming : body;
    const request = makeIncomingRequest(head, content, () => this.makeSignal());
    latest = this;
    this.request = request;
    let result;
    try {
      result = run(request, this);
    } catch (error) {
      this.failed(error);
      return;
    }
    if (isResponse(result)) {
      this.respond(result);
      return;
    }
    try {
      this.awaitResult(result);
    } catch (error) {
      this.failed(error); // a getter of the returned value threw
    }
  }

  awaitResult(result) {
    if (!isThenable(result)) {
      this.refuseResult(result);
      return;
    }
    calls.set(this.id, this);
    Promise.resolve(result).then(
      (response) => (isResponse(response) ? this.respond(response) : this.refuseResult(response)),
      (error) => this.failed(error),
    );
  }

  /** The handler threw. The request goes to the origin if the worker asked for that and has one. */
  failed(error) {
    const passed = this.passesThrough ? passToOrigin(this.request) : null;
    if (passed === null) {
      this.fail(ErrorCode.EXCEPTION, error);
      return;
    }
    native.log(Level.ERROR, `Uncaught ${inspect(error)} (the request goes to the origin)`);
    calls.set(this.id, this);
    passed.then(
      (response) => this.respond(response),
      () => this.fail(ErrorCode.EXCEPTION, error),
    );
  }

  /** An event other than fetch. The result of `run(call)` is sent to Python once every waitUntil() promise is settled. */
  startEvent(run) {
    latest = this;
    calls.set(this.id, this);
    let outcome = null;
    this.onIdle = () => {
      if (outcome === null || (this.waits > 0 && !this.isPrompt) || this.answered) return;
      const failure = outcome.failure ?? this.rejected;
      this.tell(failure === null ? 200 : 500, failure === null ? outcome.value : describeFailure(failure.error, this.said));
    };
    const settle = (value) => {
      outcome = value;
      this.onIdle();
    };
    new Promise((resolve) => resolve(run(this))).then(
      (value) => settle({ value, failure: null }),
      (error) => settle({ failure: { error } }),
    );
  }

  /** A method call from another worker. The value is sent at once; the response stays open while its streams are sent and stubs held. */
  startMethod(run) {
    latest = this;
    calls.set(this.id, this);
    new Promise((resolve) => resolve(run(this))).then(
      ({ bytes, sent, isKept }) => {
        if (this.canceled) return;
        if (sent.length === 0) {
          this.tell(200, bytes);
          return;
        }
        const head = `value-length: ${bytes.length}\r\n${isKept ? "value-kept: 1\r\n" : ""}`;
        this.stream(200, head, sourceOfValue(bytes, Promise.all(sent)));
      },
      (error) => this.tell(500, lazy("worker/thrown.js").describeThrown(error)),
    );
  }

  /** Sends the outcome of an event: bytes unchanged, any other value as JSON. */
  tell(status, value) {
    const body = value instanceof Uint8Array ? value : JSON.stringify(value ?? {});
    const done = status === 200 && this.waits + this.held === 0; // a failure is sent first, so that Python reads it before the end of the call
    if (native.respond(this.id, status, "", body, done)) {
      this.answered = true;
      this.finishIfDone();
    } else {
      this.stream(status, "", body);
    }
  }

  refuseResult(result) {
    const error = new TypeError(
      result === undefined
        ? "The fetch handler returned nothing; it must return a Response."
        : `The fetch handler returned ${describeValue(result)}, not a Response.`,
    );
    this.fail(ErrorCode.NOT_A_RESPONSE, error);
  }

  respond(response) {
    if (this.canceled) return;
    let parts;
    try {
      parts = describeResponse(response, this.head);
    } catch (error) {
      this.fail(ErrorCode.NOT_A_RESPONSE, error);
      return;
    }
    const { status, body, webSocket, told } = parts;
    const head = told !== null && this.isHead ? `content-length: ${told}\r\n${parts.head}` : parts.head;
    if (head.length > MAX_RESPONSE_HEAD) {
      this.fail(ErrorCode.NOT_A_RESPONSE, new RangeError("The headers of the response are longer than 128 KB."));
      return;
    }
    if (webSocket !== null) {
      this.becomeSocket(webSocket, head);
      return;
    }
    if (body === null || typeof body === "string" || body instanceof Uint8Array) {
      if (native.respond(this.id, status, head, body, this.waits + this.held === 0)) {
        this.answered = true;
        this.finishIfDone();
        return;
      }
    }
    this.stream(status, head, body); // too large for one frame, or a stream
  }

  /** The response is a WebSocket; the call stays open until the socket closes. */
  becomeSocket(socket, head) {
    if (this.incoming === null || !this.isUpgrade) {
      this.fail(ErrorCode.NOT_A_RESPONSE, new TypeError("A Response with a webSocket answers only a WebSocket upgrade request."));
      return;
    }
    let far;
    try {
      const { SocketPort } = lazy("worker/socket_port.js");
      far = lazy("sockets/websocket.js").takeClient(socket, (listener) => (this.socket = new SocketPort(this, listener)));
    } catch (error) {
      this.fail(ErrorCode.NOT_A_RESPONSE, error);
      return;
    }
    calls.set(this.id, this);
    if (far !== null) {
      this.handOver(far, head);
      return;
    }
    native.beginStream(this.id, 101, head);
    this.outgoing = this.socket.makeOutgoing();
    this.socket.run(this.incoming, this.outgoing).then(
      () => {
        this.answered = true;
        this.finishIfDone();
      },
      (error) => this.fail(ErrorCode.STREAM, error),
    );
  }

  /** The response is a WebSocket that hibernates: Python connects it with the client, and the call ends. */
  handOver(far, head) {
    Promise.resolve(far.connect(this)).then(
      () => {
        if (this.canceled) return;
        native.respond(this.id, 101, head, null, this.waits + this.held === 0);
        this.answered = true;
        this.finishIfDone();
      },
      (error) => this.fail(ErrorCode.STREAM, error),
    );
  }

  stream(status, head, body) {
    let content = body;
    try {
      if (typeof body === "string") content = encodeText(body);
    } catch (error) {
      this.fail(ErrorCode.EXCEPTION, error); // out of memory
      return;
    }
    calls.set(this.id, this);
    native.beginStream(this.id, status, `${lengthLine(content)}${head}`);
    this.outgoing = new OutgoingBody(this.id, sourceOf(content));
    this.outgoing.send().then(
      () => {
        this.answered = true;
        this.finishIfDone();
      },
      (error) => this.fail(ErrorCode.STREAM, error),
    );
  }

  fail(code, error) {
    native.fail(this.id, code, error);
    this.answered = true;
    this.finishIfDone();
  }

  waitUntil(promise) {
    this.waits++;
    if (!this.answered) calls.set(this.id, this);
    Promise.resolve(promise).then(
      () => this.settled(),
      (error) => {
        native.log(Level.ERROR, `waitUntil() promise rejected: ${inspect(error)}`);
        this.rejected ??= { error };
        this.settled();
      },
    );
  }

  settled() {
    this.waits--;
    this.onIdle?.();
    this.finishIfDone();
  }

  /** A connection of an object is open: the call stays open with it. */
  hold() {
    if (this.held++ === 0) native.keepCall(this.owner.slot, this.id, true);
    calls.set(this.id, this);
  }

  letGo() {
    if (this.held === 0 || --this.held > 0) return; // it was cancelled, or has others
    native.keepCall(this.owner.slot, this.id, false);
    this.finishIfDone();
  }

  isOver() {
    return this.answered && this.waits + this.held === 0;
  }

  finishIfDone() {
    if (!this.isOver() || (this.mayEnd !== null && !this.mayEnd())) return;
    calls.delete(this.id);
    this.onOver?.();
    this.incoming?.close();
    this.rpc?.close();
    if (native.done(this.id)) dropTimers(this.id);
  }

  makeSignal() {
    this.signal = createSignal();
    calls.set(this.id, this);
    return this.signal;
  }

  /** From the engine: the client disconnected. With `atOnce` the time is up, and waitUntil() promises are dropped too. */
  cancel(atOnce) {
    if (atOnce) {
      this.waits = this.held = 0;
      this.mayEnd = null;
    }
    const reason = new DOMException("The client disconnected.", "AbortError");
    this.answered = this.canceled = true;
    this.incoming?.fail(reason);
    this.socket?.lost();
    this.outgoing?.stop(reason);
    if (this.signal !== null && abortsSignals) signalAbort(this.signal, reason);
    this.finishIfDone();
  }
}

// Declares the length of a body if it is known. The front enforces it.
function lengthLine(body) {
  const length = body instanceof Uint8Array ? body.byteLength : lengthOfStream(body);
  return length === undefined ? "" : `content-length: ${length}\r\n`;
}

function sourceOf(body) {
  if (body instanceof Uint8Array) return sourceOfBytes(body);
  return isReadableStream(body) ? sourceOfStream(body) : body;
}

/** Sends bytes, then ends when the promise `end` is settled. */
function sourceOfValue(bytes, end) {
  const first = sourceOfBytes(bytes);
  return {
    read: async () => {
      const chunk = await first.read();
      if (chunk === null) await end;
      return chunk;
    },
    cancel: () => {},
  };
}

/** The description of an exception that is sent to Python. */
function describeFailure(error, said) {
  return { ...lazy("worker/thrown.js").describeThrown(error), own: undefined, said };
}

function isThenable(value) {
  return (typeof value === "object" || typeof value === "function") && value !== null && typeof value.then === "function";
}

function describeValue(value) {
  if (value === null) return "null";
  if (typeof value !== "object") return `a ${typeof value}`;
  try {
    return `an object (${inspect(value).slice(0, 100)})`;
  } catch {
    return "an object";
  }
}
