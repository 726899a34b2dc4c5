// What ctx of an object can do with hibernatable WebSockets: arguments and their errors. sockets.js does the work.
// https://developers.cloudflare.com/durable-objects/api/state/#acceptwebsocket
import { encodeText } from "../internal/text.js";
import { requireArguments, toUSVString } from "../internal/webidl.js";
import { heldOf, isWebSocket } from "../sockets/websocket.js";
import { isPair, WebSocketRequestResponsePair } from "./auto_response.js";

const MAX_TAGS = 10;
const MAX_TAG = 256; // bytes
const MAX_AUTO = 2048; // bytes of an automatic request or response
const MAX_EVENT_MS = 604_800_000;

function toSocket(value, where) {
  if (!isWebSocket(value)) throw new TypeError(`${where}: the argument must be a WebSocket.`);
  return value;
}

function toTags(value) {
  if (value === undefined) return [];
  const tags = [...new Set(Array.from(value, (tag) => toUSVString(tag)))];
  if (tags.length > MAX_TAGS) throw new Error(`a Hibernatable WebSocket cannot have more than ${MAX_TAGS} tags`);
  for (const tag of tags) {
    if (encodeText(tag).length > MAX_TAG) throw new Error(`"${tag}" is longer than the max tag length (${MAX_TAG} characters).`);
  }
  return tags;
}

function checkAuto(text, name) {
  const size = encodeText(text).length;
  if (size <= MAX_AUTO) return;
  const small = name.toLowerCase();
  throw new RangeError(`${name} cannot be larger than ${MAX_AUTO} bytes. A ${small} of size ${size} was provided.`);
}

/** Accepts a socket that stays open while the object is evicted. Its events are methods of the object. */
export function acceptWebSocket(sockets, socket, tags = undefined) {
  requireArguments(arguments.length - 1, 1, "acceptWebSocket");
  toSocket(socket, "acceptWebSocket");
  sockets.accept(socket, () => toTags(tags));
}

export function getWebSockets(sockets, tag) {
  return sockets.list(tag === undefined ? undefined : toUSVString(tag));
}

export function getTags(socket) {
  requireArguments(arguments.length, 1, "getTags");
  const held = heldOf(toSocket(socket, "getTags"));
  if (held === null) throw new Error("only hibernatable websockets can have tags.");
  return [...held.tags];
}

/** Python answers messages that are equal to the request; they do not wake the object up. */
export function setAutoResponse(sockets, pair) {
  if (pair === undefined) {
    sockets.setAutoResponse(null);
    return;
  }
  if (!isPair(pair)) throw new TypeError("setWebSocketAutoResponse: the argument must be a WebSocketRequestResponsePair.");
  checkAuto(pair.request, "Request");
  checkAuto(pair.response, "Response");
  sockets.setAutoResponse(pair);
}

export function getAutoResponse(sockets) {
  const found = sockets.getAutoResponse();
  return found === null ? null : new WebSocketRequestResponsePair(found.request, found.response);
}

export function getAutoResponseTimestamp(socket) {
  requireArguments(arguments.length, 1, "getWebSocketAutoResponseTimestamp");
  const held = heldOf(toSocket(socket, "getWebSocketAutoResponseTimestamp"));
  return held === null || held.respondedAt < 0 ? null : new Date(held.respondedAt);
}

/** The time that an event of a socket may take; without an argument, that of all events. */
export function setEventTimeout(sockets, ms) {
  const timeout = ms === undefined || ms === null ? 0 : Math.trunc(Number(ms));
  if (timeout > MAX_EVENT_MS) throw new Error(`Event timeout should not exceed ${MAX_EVENT_MS} ms.`);
  sockets.setEventTimeout(timeout > 0 ? timeout : null);
}
