// Values on their way between workers: V8's structured clone, and beside it what that does not know: Request, Response,
// Headers, streams. A body travels whole, as bytes after the value.
//
//     u32 length, the value | u32 length, JSON of the platform objects | their bytes
import { deserialize, serialize } from "../dom/clone.js";
import { DOMException } from "../dom/exception.js";
import { Headers } from "../fetch/headers.js";
import { isRequest, Request } from "../fetch/request.js";
import { isResponse, Response } from "../fetch/response.js";
import { decodeText, encodeText } from "../internal/text.js";
import { isReadableStream } from "../streams/streams.js";

const MOST_BYTES = 32 * 1024 * 1024;

/** How a platform object is told: JSON facts, and the stream or promise of bytes that go with it. */
function describe(object) {
  if (object instanceof Headers) return { facts: { kind: "headers", list: [...object] } };
  if (isReadableStream(object)) return { facts: { kind: "stream" }, bytes: () => new Response(object).bytes() };
  if (isResponse(object)) {
    const { status, statusText, headers, body } = object;
    return { facts: { kind: "response", status, statusText, list: [...headers], bare: body === null }, bytes: () => object.bytes() };
  }
  if (isRequest(object)) {
    const { method, url, redirect, headers, body } = object;
    return { facts: { kind: "request", method, url, redirect, list: [...headers], bare: body === null }, bytes: () => object.bytes() };
  }
  throw new DOMException(`A ${object.constructor.name} cannot be sent to another worker.`, "DataCloneError");
}

const MAKERS = {
  __proto__: null,
  headers: ({ list }) => new Headers(list),
  stream: (facts, bytes) => new Response(bytes).body,
  response: ({ status, statusText, list, bare }, bytes) => new Response(bare ? null : bytes, { status, statusText, headers: list }),
  request: ({ method, url, redirect, list, bare }, bytes) =>
    new Request(url, { method, redirect, headers: list, body: bare ? undefined : bytes }),
};

/** A value as bytes. */
export async function writeValue(value) {
  const found = [];
  const { bytes } = serialize(value, (object) => {
    const host = describe(object);
    found.push(host);
    return host;
  });
  const bodies = await Promise.all(found.map((host) => (host.bytes === undefined || host.facts.bare ? new Uint8Array() : host.bytes())));
  const facts = encodeText(JSON.stringify(found.map(({ facts }, i) => ({ ...facts, size: bodies[i].length }))));
  const parts = [lengthOf(bytes), bytes, lengthOf(facts), facts, ...bodies];
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  if (size > MOST_BYTES) throw new RangeError(`A value of ${size} bytes is too large to be sent to another worker: the limit is 32 MiB.`);
  const whole = new Uint8Array(size);
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

/** The value that bytes stand for. */
export function readValue(whole) {
  const view = new DataView(whole.buffer, whole.byteOffset, whole.byteLength);
  let at = 0;
  const take = (size) => whole.subarray(at, (at += size));
  const sized = () => {
    const size = view.getUint32(at, true);
    at += 4;
    return take(size);
  };
  const bytes = sized();
  const facts = JSON.parse(decodeText(sized()));
  const hosts = facts.map((fact) => MAKERS[fact.kind](fact, take(fact.size).slice()));
  return deserialize(bytes, hosts);
}
