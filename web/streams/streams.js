// https://streams.spec.whatwg.org/: turns the classes of web-streams-polyfill into interfaces of the platform.
import "./early.js";
import "./differences.js";
import {
  internals,
  onExpectedLength,
  PLAIN,
  readerRead,
  setPlainByteStreams,
  ByteLengthQueuingStrategy,
  CountQueuingStrategy,
  ReadableByteStreamController,
  ReadableStream,
  ReadableStreamBYOBReader,
  ReadableStreamBYOBRequest,
  ReadableStreamDefaultController,
  ReadableStreamDefaultReader,
  TransformStream,
  TransformStreamDefaultController,
  WritableStream,
  WritableStreamDefaultController,
  WritableStreamDefaultWriter,
} from "web-streams-polyfill";
import { defineTransferable, structuredClone } from "../dom/clone.js";
import { DOMException } from "../dom/exception.js";
import { lazy } from "../internal/lazy.js";
import { defineInterface } from "../internal/platform.js";
import { encodeText } from "../internal/text.js";
import { isOn, whenFlagsAreSet } from "../worker/compatibility.js";
import { setLength, toLength } from "./lengths.js";

// The internals of the library; see tools/hide_streams.mjs.
const {
  _disturbed: disturbedKey,
  _readable: readableKey,
  _readableStreamController: controllerKey,
  _state: stateKey,
  _writable: writableKey,
  _writer: writerKey,
} = internals;

const { getReader } = ReadableStream.prototype;

const describeStream = (stream) => ({ locked: stream.locked, state: stream[stateKey] });
const describeNothing = () => ({});

// As at Cloudflare, `expectedLength` becomes the Content-Length of a body.
onExpectedLength((stream, length) => setLength(stream, toLength(length)));
whenFlagsAreSet(() => setPlainByteStreams(isOn("streams_no_default_auto_allocate_chunk_size")));

defineInterface(ReadableStream, { describe: describeStream });
defineInterface(WritableStream, { describe: describeStream });
defineInterface(TransformStream);
defineInterface(ByteLengthQueuingStrategy);
defineInterface(CountQueuingStrategy);
for (const Class of [
  ReadableByteStreamController,
  ReadableStreamBYOBReader,
  ReadableStreamBYOBRequest,
  ReadableStreamDefaultController,
  ReadableStreamDefaultReader,
  TransformStreamDefaultController,
  WritableStreamDefaultController,
  WritableStreamDefaultWriter,
]) {
  defineInterface(Class, { describe: describeNothing });
}

// https://webidl.spec.whatwg.org/#es-asynchronous-iterator-prototype-object: the library's prototype does not inherit from the language's.
const iteratorPrototype = Object.getPrototypeOf(new ReadableStream().values());
delete iteratorPrototype[Symbol.asyncIterator];
Object.setPrototypeOf(iteratorPrototype, Object.getPrototypeOf(Object.getPrototypeOf(async function* () {}).prototype));

// No longer in the standard.
delete WritableStreamDefaultController.prototype.abortReason;

export function isReadableStream(value) {
  return value instanceof ReadableStream && Object.hasOwn(value, controllerKey);
}

/** The writer that holds the lock of a WritableStream, or undefined. */
export function writerOf(stream) {
  return stream[writerKey];
}

/** A TransformStream with the given sides. */
export function createTransform(readable, writable) {
  const stream = new TransformStream();
  stream[readableKey] = readable;
  stream[writableKey] = writable;
  return stream;
}

// https://streams.spec.whatwg.org/#rs-transfer, #ws-transfer and #ts-transfer
function isLocked(stream) {
  return stream instanceof TransformStream ? stream.readable.locked || stream.writable.locked : stream.locked;
}

function requireUnlocked(stream) {
  if (isLocked(stream)) throw new DOMException("A locked stream cannot be transferred.", "DataCloneError");
}

defineTransferable({
  is: (object) => [ReadableStream, TransformStream, WritableStream].some((Class) => object instanceof Class),
  begin(stream) {
    requireUnlocked(stream);
    return lazy("streams/transfer.js").beginTransfer(stream);
  },
  finish(stream, successor) {
    requireUnlocked(stream); // again, because a transform earlier in the list may have locked it
    lazy("streams/transfer.js").finishTransfer(stream, successor);
  },
});

/** https://streams.spec.whatwg.org/#is-readable-stream-disturbed */
export function isDisturbed(stream) {
  return stream[disturbedKey];
}

/** Marks a stream whose source was read without it as disturbed. */
export function markDisturbed(stream) {
  stream[disturbedKey] = true;
}

/**
 * https://streams.spec.whatwg.org/#readablestream-tee with cloneForBranch2: a change to a chunk of one branch does not affect the
 * other.
 */
export function teeForClone(stream) {
  const [first, second] = stream.tee();
  if (stream[controllerKey] instanceof ReadableByteStreamController) return [first, second];
  const reader = second.getReader();
  const cloned = new ReadableStream(
    {
      async pull(controller) {
        const { value, done } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(structuredClone(value));
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return [first, cloned];
}

/** The error for a chunk that is not bytes. */
export function notBytes(chunk) {
  const given = chunk === null ? "null" : typeof chunk === "object" ? "an object" : `a value of type ${typeof chunk}`;
  const error = new TypeError("This ReadableStream did not return bytes.");
  // What to do goes into the cause, because code compares the text.
  const hint = typeof chunk === "string" ? "enqueue new TextEncoder().encode(string), or send stream.pipeThrough(new TextEncoderStream())" : "a body consists of Uint8Arrays";
  error.cause = `The stream produced ${given}: ${hint}.`;
  return error;
}

/** The bytes of a chunk, or undefined. The standard allows Uint8Arrays only; Cloudflare also allows buffers, views and strings. */
function bytesOf(chunk) {
  if (chunk instanceof Uint8Array) return chunk;
  if (typeof chunk === "string") return encodeText(chunk);
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  return chunk instanceof ArrayBuffer ? new Uint8Array(chunk) : undefined;
}

/**
 * The next chunk of a body, or null at the end. It returns no { value, done }, so a `then` on Object.prototype has no effect.
 * Invalid chunks are rejected here: null would look like the end, and a promise would be awaited.
 */
export function readNext(reader) {
  return new Promise((resolve, reject) => {
    const take = (chunk) => {
      const bytes = bytesOf(chunk);
      if (bytes !== undefined) {
        resolve(bytes);
        return;
      }
      const error = notBytes(chunk);
      reader.cancel(error).catch(() => {}); // the source need not continue
      reject(error);
    };
    readerRead(reader, { _chunkSteps: take, _closeSteps: () => resolve(null), _errorSteps: reject });
  });
}

/**
 * https://streams.spec.whatwg.org/#readablestreamdefaultreader-read-all-bytes: calls `success(chunks, length)` or `failure(error)`
 * once, without promises. `refuse(length)` is called for each chunk; if it returns an error, reading stops.
 */
export function readAllBytes(stream, success, failure, refuse) {
  const reader = getReader.call(stream);
  const chunks = [];
  let length = 0;
  let isReading = false;
  let isMore = false;
  const steps = {
    _chunkSteps(chunk) {
      if (!(chunk instanceof Uint8Array)) {
        failure(notBytes(chunk));
        return;
      }
      const error = refuse(chunk.length);
      if (error !== null) {
        chunks.length = 0;
        failure(error);
        reader.cancel(error).catch(() => {});
        return;
      }
      chunks.push(chunk);
      length += chunk.length;
      readOn();
    },
    _closeSteps: () => success(chunks, length),
    _errorSteps: failure,
  };
  // A chunk that is available arrives before readerRead returns. A loop, because recursion could overflow the stack.
  const readOn = () => {
    isMore = true;
    if (isReading) return;
    isReading = true;
    while (isMore) {
      isMore = false;
      readerRead(reader, steps);
    }
    isReading = false;
  };
  readOn();
}

export {
  PLAIN,
  ByteLengthQueuingStrategy,
  CountQueuingStrategy,
  ReadableByteStreamController,
  ReadableStream,
  ReadableStreamBYOBReader,
  ReadableStreamBYOBRequest,
  ReadableStreamDefaultController,
  ReadableStreamDefaultReader,
  TransformStream,
  TransformStreamDefaultController,
  WritableStream,
  WritableStreamDefaultController,
  WritableStreamDefaultWriter,
};
