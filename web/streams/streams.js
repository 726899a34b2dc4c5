// https://streams.spec.whatwg.org/: the classes are those of web-streams-polyfill; here they become interfaces of ours.
import "./early.js";
import {
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
import { defineInterface } from "../internal/platform.js";

const describeStream = (stream) => ({ locked: stream.locked, state: stream._state });
const describeNothing = () => ({});

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

export function isReadableStream(value) {
  return value instanceof ReadableStream && Object.hasOwn(value, "_readableStreamController");
}

/** https://streams.spec.whatwg.org/#is-readable-stream-disturbed */
export function isDisturbed(stream) {
  return stream._disturbed;
}

/** The stream has been read by other means than a reader: from now on it is as if it had been read to its end. */
export function markDisturbed(stream) {
  stream._disturbed = true;
}

export {
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
