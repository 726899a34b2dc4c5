// Serializes values that travel between workers. V8's structured clone writes most of a value; this file adds Request, Response,
// Headers and streams. A small body is sent as bytes after the value. A larger body or a stream goes through a pipe.
//
// Most values hold no platform object. They are sent as V8 writes them, beginning with 0xff. The others are
//
//     u8 zero | u32 length, the value | u32 length, JSON of the platform objects | their bytes
import { PipedBody, sendThroughPipe } from "#bindings/pipe/pipe.js";
import { deserialize, serialize } from "../dom/clone.js";
import { DOMException } from "../dom/exception.js";
import { Body, extractBody, isUnusable, streamOf, takeBody } from "../fetch/body.js";
import { Headers } from "../fetch/headers.js";
import { isRequest, Request, requestState } from "../fetch/request.js";
import { listAsRead } from "../fetch/content_coding.js";
import { headerList, isResponse, Response, responseState } from "../fetch/response.js";
import { decodeText, encodeText } from "../internal/text.js";
import { isDisturbed, isReadableStream } from "../streams/streams.js";
import { sourceOfBytes, sourceOfStream } from "./bodies.js";

const MOST_BYTES = 32 * 1024 * 1024;
const SMALL = 64 * 1024; // bodies up to this size are sent with the value
const NONE = Object.freeze([]);
const PLAIN = 0xff; // the first byte of a value without platform objects
const HOSTS = new Uint8Array(1); // the first byte of a value with platform objects

function refuse(message) {
  throw new DOMException(message, "DataCloneError");
}

/** Describes a platform object: facts in JSON, and `take()`, which returns the bytes or the source of its content. */
function describe(object) {
  if (object instanceof Headers) return { facts: { kind: "headers", list: [...object] }, take: () => null };
  if (isReadableStream(object)) {
    if (object.locked || isDisturbed(object)) refuse("A ReadableStream that is locked or was read from cannot be sent to another worker.");
    return { facts: { kind: "stream" }, take: () => takeBody(extractBody(object)) };
  }
  if (isResponse(object)) {
    const { status, statusText } = object;
    const state = responseState(object);
    const { body, webSocket } = state;
    const list = pairsOf(listAsRead(headerList(state)));
    if (webSocket !== null) refuse("A Response with a webSocket cannot be sent to another worker by a method call: use fetch().");
    return describeBody({ kind: "response", status, statusText, list }, body);
  }
  if (isRequest(object)) {
    const { method, url, redirect, headers } = object;
    return describeBody({ kind: "request", method, url, redirect, list: [...headers] }, requestState(object).body);
  }
  return refuse(`A ${object.constructor.name} cannot be sent to another worker.`);
}

function pairsOf({ pairs }) {
  return Array.from({ length: pairs.length / 2 }, (_, index) => [pairs[2 * index], pairs[2 * index + 1]]);
}

function describeBody(facts, body) {
  if (isUnusable(body)) refuse(`A ${facts.kind} whose body was used cannot be sent to another worker.`);
  return { facts, take: () => takeBody(body) };
}

const MAKERS = {
  __proto__: null,
  headers: ({ list }) => new Headers(list),
  stream: (facts, body) => body ?? new Response("").body,
  response: ({ status, statusText, list }, body) => new Response(body, { status, statusText, headers: list }),
  request: ({ method, url, redirect, list }, body) =>
    new Request(url, { method, redirect, headers: list, body: body ?? undefined, duplex: body === null ? undefined : "half" }),
};

/** The content as bytes to send with the value, or as a source to send through a pipe. */
function partOf(content) {
  const whole = typeof content === "string" ? encodeText(content) : content;
  if (whole === null) return { form: "none" };
  if (!(whole instanceof Uint8Array)) return { form: "pipe", source: isReadableStream(whole) ? sourceOfStream(whole) : whole };
  return whole.length <= SMALL ? { form: "here", bytes: whole } : { form: "pipe", source: sourceOfBytes(whole) };
}

/**
 * A value as { bytes, pipes, sent }: `pipes` are the names of the pipes for its streams, `sent` are promises that resolve when
 * each stream is sent. Returns a promise of it if the value holds platform objects.
 */
export function writeValue(value) {
  const found = [];
  const { bytes } = serialize(value, (object) => {
    const host = describe(object);
    found.push(host);
    return host;
  });
  if (found.length > 0) return writeHosts(bytes, found);
  checkSize(bytes.length);
  return { bytes, pipes: NONE, sent: NONE };
}

function checkSize(size) {
  if (size > MOST_BYTES) throw new RangeError(`A value of ${size} bytes is too large to be sent to another worker: the limit is 32 MiB.`);
  return size;
}

async function writeHosts(bytes, found) {
  const pipes = [];
  const sent = [];
  const facts = [];
  const bodies = [];
  for (const host of found) {
    const { form, bytes: body = new Uint8Array(), source } = partOf(host.take());
    const fact = { ...host.facts, form, size: body.length };
    if (form === "pipe") {
      const sending = await sendThroughPipe(source);
      fact.pipe = sending.pipe;
      pipes.push(sending.pipe);
      sent.push(sending.sent);
    }
    bodies.push(body);
    facts.push(fact);
  }
  const text = encodeText(JSON.stringify(facts));
  return { bytes: concat([HOSTS, lengthOf(bytes), bytes, lengthOf(text), text, ...bodies]), pipes, sent };
}

function concat(parts) {
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  const whole = new Uint8Array(checkSize(size));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function lengthOf({ length }) {
  return new Uint8Array(new Uint32Array([length]).buffer);
}

/** The value that writeValue() serialized. */
export function readValue(whole) {
  if (whole[0] === PLAIN) return deserialize(whole);
  const view = new DataView(whole.buffer, whole.byteOffset, whole.byteLength);
  let at = HOSTS.length;
  const take = (size) => whole.subarray(at, (at += size));
  const sized = () => {
    const size = view.getUint32(at, true);
    at += 4;
    return take(size);
  };
  const bytes = sized();
  const facts = JSON.parse(decodeText(sized()));
  const hosts = facts.map((fact) => {
    const body = take(fact.size);
    const source = fact.form === "pipe" ? new PipedBody(fact.pipe) : body.slice();
    return MAKERS[fact.kind](fact, fact.form === "none" ? null : streamOf(new Body(source)));
  });
  return deserialize(bytes, hosts);
}
