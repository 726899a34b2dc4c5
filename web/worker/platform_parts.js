// Platform objects in values that travel between workers: Request, Response, Headers, Blob, DOMException, AbortSignal, streams.
import { PipedBody, pipeSink, receiveThroughPipe, sendThroughPipe } from "#bindings/pipe/pipe.js";
import { makeFetcher } from "#bindings/service/service.js";
import { addAbortAlgorithm, createSignal, isAbortSignal, signalAbort } from "../dom/abort.js";
import { DOMException } from "../dom/exception.js";
import { Body, extractBody, isUnusable, streamOf, takeBody } from "../fetch/body.js";
import { listAsRead } from "../fetch/content_coding.js";
import { Headers } from "../fetch/headers.js";
import { isRequest, Request, requestState } from "../fetch/request.js";
import { headerList, isResponse, Response, responseState } from "../fetch/response.js";
import { blobBytes, blobType, createBlob, isBlob } from "../file/blob.js";
import { File, isFile, lastModifiedOfFile, nameOfFile } from "../file/file.js";
import { encodeText } from "../internal/text.js";
import { cloneError } from "../rpc/errors.js";
import { isDisturbed, isReadableStream, WritableStream } from "../streams/streams.js";
import { sourceOfBytes, sourceOfStream } from "./bodies.js";
import { readValue, writeValue } from "./parcel.js";
import { makeSent } from "./thrown.js";

const SMALL = 64 * 1024; // bodies up to this size are sent with the value

/** Describes a platform object: facts in JSON, and `take()`, which returns its content. undefined if it cannot be sent. */
export function describePart(object, session) {
  if (object instanceof Headers) return { facts: { kind: "headers", list: [...object] }, take: null };
  if (isReadableStream(object)) return describeReadable(object);
  if (object instanceof WritableStream) return describeWritable(object);
  if (isResponse(object)) return describeResponse(object);
  if (isRequest(object)) {
    const { method, url, redirect, headers } = object;
    return describeBody({ kind: "request", method, url, redirect, list: [...headers] }, requestState(object).body);
  }
  if (isBlob(object)) return describeBlob(object);
  if (isAbortSignal(object)) return describeSignal(object, session);
  if (object instanceof DOMException) return { facts: { kind: "dom", name: object.name, message: object.message }, take: null };
  return undefined;
}

function describeReadable(stream) {
  if (stream.locked) throw new TypeError("The ReadableStream has been locked to a reader.");
  if (isDisturbed(stream)) throw cloneError("A ReadableStream that was read from cannot be sent to another worker.");
  return { facts: { kind: "stream" }, take: () => takeBody(extractBody(stream)) };
}

function describeWritable(stream) {
  if (stream.locked) throw new TypeError("The WritableStream has been locked to a writer.");
  return { facts: { kind: "writable" }, take: () => ({ sink: stream.getWriter() }) };
}

function describeResponse(response) {
  const { status, statusText } = response;
  const state = responseState(response);
  const { body, webSocket } = state;
  const list = pairsOf(listAsRead(headerList(state)));
  if (webSocket !== null) throw cloneError("A Response with a webSocket cannot be sent to another worker by a method call: use fetch().");
  return describeBody({ kind: "response", status, statusText, list }, body);
}

function pairsOf({ pairs }) {
  return Array.from({ length: pairs.length / 2 }, (_, index) => [pairs[2 * index], pairs[2 * index + 1]]);
}

function describeBody(facts, body) {
  if (isUnusable(body)) throw cloneError(`A ${facts.kind} whose body was used cannot be sent to another worker.`);
  return { facts, take: () => takeBody(body) };
}

function describeBlob(blob) {
  const file = isFile(blob) ? { name: nameOfFile(blob), modified: lastModifiedOfFile(blob) } : null;
  return { facts: { kind: "blob", type: blobType(blob), file }, take: () => ({ whole: blobBytes(blob) }) };
}

/** An aborted signal is sent with its reason. Of another the reason follows through a pipe, if it is aborted. */
function describeSignal(signal, session) {
  const bytesOf = (reason) => {
    try {
      return writeValue(reason, session, false).bytes;
    } catch {
      return writeValue(new DOMException("This operation was aborted", "AbortError"), session, false).bytes;
    }
  };
  if (signal.aborted) return { facts: { kind: "signal" }, take: () => ({ whole: bytesOf(signal.reason) }) };
  let isSent = false;
  const source = {
    read() {
      if (isSent) return Promise.resolve(null);
      isSent = true;
      if (signal.aborted) return Promise.resolve(bytesOf(signal.reason)); // since the call was made
      return new Promise((resolve) => addAbortAlgorithm(signal, (reason) => resolve(bytesOf(reason))));
    },
    cancel() {},
  };
  return { facts: { kind: "signal" }, take: () => source, isQuiet: true };
}

/** How content travels: { form, bytes } with the value, or { form, begin } with begin() -> { pipe, sent } through a pipe. */
export function partOf(content) {
  if (content === null) return { form: "none" };
  if (content.sink !== undefined) return { form: "pipe", begin: () => receiveThroughPipe(content.sink) };
  if (content.whole !== undefined) return { form: "here", bytes: content.whole };
  const whole = typeof content === "string" ? encodeText(content) : content;
  if (!(whole instanceof Uint8Array)) {
    const source = isReadableStream(whole) ? sourceOfStream(whole) : whole;
    return { form: "pipe", begin: () => sendThroughPipe(source) };
  }
  if (whole.length <= SMALL) return { form: "here", bytes: whole };
  return { form: "pipe", begin: () => sendThroughPipe(sourceOfBytes(whole)) };
}

const MAKERS = {
  __proto__: null,
  headers: ({ list }) => new Headers(list),
  fetcher: ({ pass }) => makeFetcher(pass),
  stream: (fact, body) => streamIn(fact, body) ?? new Response("").body,
  writable: ({ pipe }) => new WritableStream(pipeSink(pipe), { highWaterMark: 1 }),
  response: (fact, body) => new Response(streamIn(fact, body), { status: fact.status, statusText: fact.statusText, headers: fact.list }),
  request(fact, bytes) {
    const { url, method, redirect, list: headers } = fact;
    const body = streamIn(fact, bytes) ?? undefined;
    return new Request(url, { method, redirect, headers, body, duplex: body === undefined ? undefined : "half" });
  },
  blob({ type, file }, body) {
    const bytes = body.slice();
    return file === null ? createBlob(bytes, type) : new File([bytes], file.name, { type, lastModified: file.modified });
  },
  dom: ({ name, message }) => new DOMException(message, name),
  error: makeSent,
  signal(fact, body, session) {
    const signal = createSignal();
    const abort = (bytes) => bytes !== null && signalAbort(signal, readValue(bytes, session).value);
    if (fact.form === "here") abort(body);
    else new PipedBody(fact.pipe).read().then(abort, () => {}); // the sender is gone: it aborts nothing any more
    return signal;
  },
};

function streamIn(fact, body) {
  if (fact.form === "none") return null;
  return streamOf(new Body(fact.form === "pipe" ? new PipedBody(fact.pipe) : body.slice()));
}

/** The platform object that describePart() described. The facts come from another worker. */
export function makePart(fact, body, session) {
  const make = MAKERS[fact.kind];
  if (make === undefined) throw cloneError("The value could not be read.");
  return make(fact, body, session);
}
