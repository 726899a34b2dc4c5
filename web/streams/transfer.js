// https://streams.spec.whatwg.org/#rs-transfer: a transferred stream is piped through a pair of message ports, which clone its chunks.
import { DOMException } from "../dom/exception.js";
import { MessageChannel } from "../dom/message_port.js";
import { createTransform, ReadableStream, WritableStream } from "./streams.js";

/** https://streams.spec.whatwg.org/#abstract-opdef-packandpostmessage. The record has no prototype, so a worker cannot interfere. */
function post(port, type, value = undefined) {
  port.postMessage({ __proto__: null, type, value });
}

/** https://streams.spec.whatwg.org/#abstract-opdef-packandpostmessagehandlingerror: sends the error if the value cannot be cloned. */
function postOrTell(port, type, value) {
  try {
    post(port, type, value);
  } catch (error) {
    tellError(port, error);
    throw error;
  }
}

/** https://streams.spec.whatwg.org/#abstract-opdef-crossrealmtransformsenderror */
function tellError(port, error) {
  try {
    post(port, "error", error);
  } catch {
    // The error cannot be cloned either.
  }
}

/** Calls `steps[type](value)` for each message, and `steps.error` with a DataCloneError if a message could not be read. */
function listen(port, steps) {
  port.onmessage = ({ data }) => steps[data.type]?.(data.value);
  port.onmessageerror = () => {
    const error = new DOMException("A chunk could not be cloned.", "DataCloneError");
    tellError(port, error);
    steps.error(error);
    port.close();
  };
}

/** https://streams.spec.whatwg.org/#abstract-opdef-setupcrossrealmtransformwritable */
function crossRealmWritable(port) {
  let wanted = Promise.withResolvers();
  let controller;
  const open = () => {
    wanted?.resolve();
    wanted = null;
  };
  listen(port, {
    pull: open,
    error(value) {
      controller.error(value);
      open();
    },
  });
  return new WritableStream({
    start: (given) => void (controller = given),
    async write(chunk) {
      await wanted?.promise;
      wanted = Promise.withResolvers();
      try {
        postOrTell(port, "chunk", chunk);
      } catch (error) {
        port.close();
        throw error;
      }
    },
    close() {
      post(port, "close");
      port.close();
    },
    abort(reason) {
      try {
        postOrTell(port, "error", reason);
      } finally {
        port.close();
      }
    },
  });
}

/** https://streams.spec.whatwg.org/#abstract-opdef-setupcrossrealmtransformreadable */
function crossRealmReadable(port) {
  let controller;
  listen(port, {
    chunk: (value) => controller.enqueue(value),
    close() {
      controller.close();
      port.close();
    },
    error(value) {
      controller.error(value);
      port.close();
    },
  });
  return new ReadableStream(
    {
      start: (given) => void (controller = given),
      pull: () => post(port, "pull"),
      cancel(reason) {
        try {
          postOrTell(port, "error", reason);
        } finally {
          port.close();
        }
      },
    },
    { highWaterMark: 0 },
  );
}

function ignore() {}

const ends = new WeakMap(); // successor -> the port at the other end, until the stream is piped there

function beginReadable() {
  const { port1, port2 } = new MessageChannel();
  const successor = crossRealmReadable(port2);
  ends.set(successor, port1);
  return successor;
}

function beginWritable() {
  const { port1, port2 } = new MessageChannel();
  const successor = crossRealmWritable(port2);
  ends.set(successor, port1);
  return successor;
}

function finishReadable(stream, successor) {
  stream.pipeTo(crossRealmWritable(ends.get(successor))).catch(ignore);
}

function finishWritable(stream, successor) {
  crossRealmReadable(ends.get(successor)).pipeTo(stream).catch(ignore);
}

/** The stream that replaces a transferred one; it is empty until finishTransfer. */
export function beginTransfer(stream) {
  if (stream instanceof ReadableStream) return beginReadable();
  if (stream instanceof WritableStream) return beginWritable();
  return createTransform(beginReadable(), beginWritable());
}

/** Pipes the stream to its successor. The stream is locked from now on. */
export function finishTransfer(stream, successor) {
  if (stream instanceof ReadableStream) return finishReadable(stream, successor);
  if (stream instanceof WritableStream) return finishWritable(stream, successor);
  finishReadable(stream.readable, successor.readable);
  finishWritable(stream.writable, successor.writable);
}
