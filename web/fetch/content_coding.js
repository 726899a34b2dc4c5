// The content coding of a response, and whether its client can decode it. https://www.rfc-editor.org/rfc/rfc9110#name-accept-encoding
import { codingOf, streamOf, takeBody, takesEncoded } from "./body.js";
import { lazy } from "../internal/lazy.js";

const ACCEPT_ENCODING = /\naccept-encoding:([^\r\n]*)/gi;
const FROM_A_WORKER = "\ncf-worker:"; // marks a request from a worker, which decodes every coding; the front drops this header from clients
const UNDONE_HERE = ["gzip", "deflate"]; // codings that DecompressionStream can decode, for bytes that the worker encoded itself
const ENCODED_HERE = ["gzip", "br"]; // codings that Cloudflare applies; for br only the header is dropped

const nameOf = (coding) => (coding === "x-gzip" ? "gzip" : coding);

/** True if the request with this head accepts a response in `coding`. Without Accept-Encoding it accepts none, as at Cloudflare. */
function isAccepted(head, coding) {
  if (head.includes(FROM_A_WORKER)) return true;
  let others = false;
  for (const [, value] of head.matchAll(ACCEPT_ENCODING)) {
    for (const item of value.toLowerCase().split(",")) {
      const [name, ...parameters] = item.split(";").map((part) => part.trim());
      const weight = parameters.find((parameter) => /^q\s*=/.test(parameter));
      const accepts = weight === undefined || Number.parseFloat(weight.slice(weight.indexOf("=") + 1)) > 0;
      if (nameOf(name) === coding) return accepts;
      if (name === "*") others = accepts;
    }
  }
  return others;
}

/** The body leaves without its coding. Changes the headers that describe it, in a copy: the worker may still see the originals. */
function dropCoding(state) {
  state.list = state.list.copy();
  state.list.delete("content-encoding");
  state.list.delete("content-length");
  const etag = state.list.get("etag");
  if (etag?.startsWith('"')) state.list.set("etag", `W/${etag}`); // the strong tag described other bytes
}

function addVary(state) {
  const vary = state.list.get("vary");
  if (vary !== null && vary.toLowerCase().split(",").some((name) => ["*", "accept-encoding"].includes(name.trim()))) return;
  state.list = state.list.copy();
  state.list.set("vary", vary === null ? "Accept-Encoding" : `${vary}, Accept-Encoding`);
}

/**
 * Takes the body of a response that names a coding, for the client with this head. Unless `encodeBody` is "manual", a worker that
 * names a coding leaves the encoding to the platform: https://developers.cloudflare.com/workers/runtime-apis/response/#parameters.
 * A body that was received in the same coding is sent unchanged if the client accepts it.
 */
export function takeCodedBody(state, named, head) {
  const { body } = state;
  const coding = nameOf(named);
  const isPart = state.status === 206; // a part of an encoded body cannot be decoded
  const accepts = isPart || isAccepted(head, coding);
  if (body === null) {
    if (!accepts && UNDONE_HERE.includes(coding)) dropCoding(state);
    return null;
  }
  const isFetched = codingOf(body) === coding;
  const isMade = state.encodeBody === "manual" && !isFetched;
  if (isFetched || (isMade ? UNDONE_HERE : ["gzip"]).includes(coding)) addVary(state);
  if (accepts && takesEncoded(body, coding)) return takeBody(body);
  if (isMade) {
    if (accepts || !UNDONE_HERE.includes(coding)) return takeBody(body);
    dropCoding(state);
    return streamOf(body).pipeThrough(new (lazy("streams/compression.js").DecompressionStream)(coding));
  }
  if (coding === "gzip" && accepts) {
    return streamOf(body).pipeThrough(new (lazy("streams/compression.js").CompressionStream)("gzip"));
  }
  // The body is not encoded any more and will not be encoded.
  if (isFetched || ENCODED_HERE.includes(coding) || state.list.undone === coding) dropCoding(state);
  return takeBody(body);
}

/** The headers for a body that was read, without a coding that reading has undone. */
export function listAsRead(list) {
  const coding = nameOf(list.get("content-encoding")?.toLowerCase() ?? "");
  if (coding === "" || coding !== list.undone || ENCODED_HERE.includes(coding)) return list;
  const copy = list.copy();
  for (const name of ["content-encoding", "content-length"]) copy.delete(name);
  return copy;
}
