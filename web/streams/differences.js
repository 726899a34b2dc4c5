// Where readers, writers and controllers of workers differ from the standard, as they do at Cloudflare: methods of the library that
// are completed here. tools/stream_patches.mjs has the rest.
import {
  internals,
  ReadableByteStreamController,
  ReadableStreamBYOBReader,
  ReadableStreamBYOBRequest,
  WritableStreamDefaultWriter,
} from "web-streams-polyfill";
import { isArrayBuffer } from "../internal/webidl.js";

const {
  _associatedReadableByteStreamController: controllerOfRequest,
  _closeRequest: closeRequest,
  _controlledReadableByteStream: streamOfController,
  _ownerWritableStream: streamOfWriter,
  _pendingPullIntos: pullIntos,
  _queue: queueKey,
  _queueTotalSize: sizeKey,
  _inFlightCloseRequest: inFlightClose,
  _inFlightWriteRequest: inFlight,
  _state: stateKey,
  _writableStreamController: writableController,
  _writeRequests: requestsKey,
} = internals;

function define(Class, members) {
  Object.defineProperties(Class.prototype, Object.getOwnPropertyDescriptors(members));
}

const { read: readInto } = ReadableStreamBYOBReader.prototype;
const { close: closeBytes, enqueue: enqueueBytes } = ReadableByteStreamController.prototype;
const { get: getRequest } = Object.getOwnPropertyDescriptor(ReadableByteStreamController.prototype, "byobRequest");
const { respond } = ReadableStreamBYOBRequest.prototype;
const { close: closeWriter, releaseLock } = WritableStreamDefaultWriter.prototype;

// https://developers.cloudflare.com/workers/runtime-apis/streams/readablestreambyobreader/: older than the option `min` of read().
define(ReadableStreamBYOBReader, {
  readAtLeast(minBytes, view) {
    const least = Math.trunc(Number(minBytes));
    if (!ArrayBuffer.isView(view)) return readInto.call(this, view);
    if (least === 0 || Number.isNaN(least)) {
      return Promise.reject(new TypeError(`Requested invalid minimum number of bytes to read (${least || 0}).`));
    }
    if (least < 0 || least > view.byteLength) {
      const shown = least < 0 ? BigInt.asUintN(64, BigInt(least)) : least;
      return Promise.reject(new TypeError(`Minimum bytes to read (${shown}) exceeds size of buffer (${view.byteLength}).`));
    }
    const min = Math.ceil(least / (view.BYTES_PER_ELEMENT ?? 1));
    // The last bytes come with `done: false`, and the end with the next read.
    return readInto.call(this, view, { min }).then((result) => (result.done && result.value?.byteLength > 0 ? { value: result.value, done: false } : result));
  },
});

const settled = new WeakSet(); // requests that close() has answered

define(ReadableByteStreamController, {
  /** Takes an ArrayBuffer too. */
  enqueue(chunk) {
    enqueueBytes.call(this, isArrayBuffer(chunk) ? new Uint8Array(chunk) : chunk);
  },
  /** close() settles a pending read of a BYOB reader, which the standard leaves to respond(0). */
  close() {
    closeBytes.call(this);
    if (this[streamOfController][stateKey] !== "closed") return;
    const request = getRequest.call(this);
    if (request === null) return;
    settled.add(request);
    respond.call(request, 0);
  },
});

define(ReadableStreamBYOBRequest, {
  respond(bytesWritten) {
    if (Number(bytesWritten) === 0 && settled.has(this)) return;
    respond.call(this, bytesWritten);
  },
  /** The least number of bytes that the reader wants. */
  get atLeast() {
    const pending = this[controllerOfRequest]?.[pullIntos];
    if (pending === undefined || pending.length === 0) return null;
    const { bytesFilled, minimumFill } = pending.peek();
    return minimumFill - bytesFilled;
  },
});

/** Takes everything out of a queue of the library. */
function emptied(queue) {
  const items = [];
  while (queue.length > 0) items.push(queue.shift());
  return items;
}

const ofPlatform = new WeakSet();

/** The second close() of a writable stream of the platform is no error. */
export function allowSecondClose(stream) {
  ofPlatform.add(stream);
}

define(WritableStreamDefaultWriter, {
  close() {
    const stream = this[streamOfWriter];
    if (stream !== undefined && ofPlatform.has(stream)) {
      if (stream[stateKey] === "closed" || stream[closeRequest] !== undefined || stream[inFlightClose] !== undefined) return Promise.resolve();
    }
    return closeWriter.call(this);
  },
  /** Writes that have not begun are dropped. */
  releaseLock() {
    const stream = this[streamOfWriter];
    releaseLock.call(this);
    if (stream === undefined || stream[requestsKey].length === 0) return;
    const requests = emptied(stream[requestsKey]);
    if (stream[inFlight] === undefined) stream[requestsKey].push(requests.shift()); // it is about to begin
    const controller = stream[writableController];
    emptied(controller[queueKey]).forEach((item, i) => {
      if (i === 0 || i > requests.length) controller[queueKey].push(item);
      else controller[sizeKey] -= item.size;
    });
    for (const { _reject: reject } of requests) reject(new TypeError("This WritableStream writer has been released."));
  },
});
