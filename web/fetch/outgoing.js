// A Response on its way out, in the form the engine sends it.
import { isUnusable, streamOf, takeBody, takesEncoded } from "./body.js";
import { isResponse, responseState } from "./response.js";
import { lazy } from "../internal/lazy.js";
import { MAX_REASON } from "../internal/wire.gen.js";

export { isResponse };

// Headers of the connection, which is the front's, and the length, which the front knows better.
const DROPPED = ["connection", "keep-alive", "transfer-encoding", "upgrade", "content-length"];

// Clients get the usual words for a status unless the worker has others.
function reasonLine({ status, statusText }) {
  if (statusText === "OK" && status === 200) return "";
  if (statusText.length > MAX_REASON) throw new TypeError(`The statusText of the Response is longer than ${MAX_REASON} characters.`);
  return ` ${statusText}\r\n`;
}

function writeHead(state) {
  let head = state.statusText === "" || state.status === 101 ? "" : reasonLine(state);
  if (state.list === null) return state.contentType === null ? head : `${head}content-type: ${state.contentType}\r\n`;
  const { pairs } = state.list;
  for (let i = 0; i < pairs.length; i += 2) {
    if (!DROPPED.includes(pairs[i])) head += `${pairs[i]}: ${pairs[i + 1]}\r\n`;
  }
  return head;
}

// https://developers.cloudflare.com/workers/runtime-apis/response/#parameters: unless `encodeBody` is "manual", a worker that names an
// encoding leaves the encoding to us. A body that came in that very encoding leaves as it came.
function bodyOf(state) {
  const coding = state.body === null || state.list === null ? null : state.list.get("content-encoding")?.toLowerCase();
  if (!coding || takesEncoded(state.body, coding) || state.encodeBody === "manual") return takeBody(state.body);
  if (coding === "gzip") {
    const { CompressionStream } = lazy("streams/compression.js");
    return streamOf(state.body).pipeThrough(new CompressionStream("gzip"));
  }
  if (coding === "br") state.list.delete("content-encoding"); // the one that Cloudflare knows and we do not: sent as it is
  return takeBody(state.body);
}

// How long the body would be that an answer to HEAD leaves out, if the worker, or the server it asked, says so.
function toldLength({ body, list }) {
  const length = body === null && list !== null ? list.get("content-length") : null;
  return length !== null && /^\d{1,15}$/.test(length) ? length : null;
}

/**
 * Take a Response apart: { status, head, body, webSocket, told }. `head` is that of a RESPONSE frame, a Latin-1 string; `body` is null, a string
 * (to be written as UTF-8), a Uint8Array, a source with read() and cancel(), or a ReadableStream that nobody has read from. The
 * Response's body is used from now on.
 * Throws TypeError for what is no Response or cannot be sent.
 */
export function describeResponse(response) {
  const state = responseState(response);
  if (state === undefined) throw new TypeError("The value is not a Response.");
  if (state.type === "error") throw new TypeError("Response.error() cannot be sent to a client.");
  const { body } = state;
  if (body !== null && isUnusable(body)) {
    throw new TypeError("The body of the Response has already been used; send a response.clone() instead.");
  }
  const content = bodyOf(state); // first: it may change what the headers say
  return { status: state.status, head: writeHead(state), body: content, webSocket: state.webSocket, told: toldLength(state) };
}
