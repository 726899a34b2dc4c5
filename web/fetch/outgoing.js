// A Response in the form that the engine sends.
import { isUnusable, takeBody } from "./body.js";
import { isResponse, responseState } from "./response.js";
import { lazy } from "../internal/lazy.js";
import { MAX_REASON } from "../internal/wire.gen.js";

export { isResponse };

// Headers of the connection, which belong to the front, and the length, which the front sets itself.
const DROPPED = ["connection", "keep-alive", "transfer-encoding", "upgrade", "content-length"];

// A status has its usual reason phrase unless the worker sets another.
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

function bodyOf(state, head) {
  const coding = state.list === null ? null : state.list.get("content-encoding")?.toLowerCase();
  return coding ? lazy("fetch/content_coding.js").takeCodedBody(state, coding, head) : takeBody(state.body);
}

// The body length to declare in the response to a HEAD request, if the worker or the server it fetched from gives one.
function toldLength({ body, list }) {
  const length = body === null && list !== null ? list.get("content-length") : null;
  return length !== null && /^\d{1,15}$/.test(length) ? length : null;
}

/**
 * Takes a Response apart: { status, head, body, webSocket, told }. `head` is that of a RESPONSE frame, a Latin-1 string; `body` is
 * null, a string (to be sent as UTF-8), a Uint8Array, a source with read() and cancel(), or an unread ReadableStream. The body of
 * the Response counts as used from now on. `requestHead` is the head of the request.
 * Throws TypeError if the value is not a Response or cannot be sent.
 */
export function describeResponse(response, requestHead) {
  const state = responseState(response);
  if (state === undefined) throw new TypeError("The value is not a Response.");
  if (state.type === "error") throw new TypeError("Return value from serve handler must not be an error response (like Response.error())");
  const { body } = state;
  if (body !== null && isUnusable(body)) {
    throw new TypeError("The body of the Response has already been used; send a response.clone() instead.");
  }
  const content = bodyOf(state, requestHead); // first, because it may change the headers
  return { status: state.status, head: writeHead(state), body: content, webSocket: state.webSocket, told: toldLength(state) };
}
