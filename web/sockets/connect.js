// `new WebSocket()` until it is connected. https://websockets.spec.whatwg.org/#the-websocket-interface
import { fetchFrom } from "#bindings/fetch/fetch.js";
import { AbortController } from "../dom/abort.js";
import { DOMException } from "../dom/exception.js";
import { isToken } from "../fetch/header_list.js";
import { callOf } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { toDOMString, toSequence, toUSVString } from "../internal/webidl.js";
import { parseHref } from "../url/url.js";

const SCHEMES = { __proto__: null, "http:": "ws:", "https:": "wss:", "ws:": "ws:", "wss:": "wss:" };

function schemeOf(href) {
  return href.slice(0, href.indexOf(":") + 1);
}

/** https://websockets.spec.whatwg.org/#dom-websocket-websocket, steps 1 to 6: an absolute URL of ws or wss. */
export function readAddress(url) {
  const text = toUSVString(url);
  // A worker has no base URL unless its code defines `location`.
  const href = parseHref(text) ?? parseHref(text, `${globalThis.location?.href}`);
  if (href === undefined) throw new DOMException("WebSocket Constructor: The url is invalid.", "SyntaxError");
  const scheme = SCHEMES[schemeOf(href)];
  if (scheme === undefined) throw new DOMException("WebSocket Constructor: The url scheme must be ws or wss.", "SyntaxError");
  if (href.includes("#")) throw new DOMException("WebSocket Constructor: The url fragment must be empty.", "SyntaxError");
  return scheme + href.slice(href.indexOf(":") + 1);
}

/** Steps 7 and 8: the subprotocols to offer in Sec-WebSocket-Protocol. */
export function readProtocols(protocols) {
  const isList = typeof protocols === "object" && protocols !== null && protocols[Symbol.iterator] !== undefined;
  const list = isList ? toSequence(protocols, "WebSocket constructor", toDOMString) : [toDOMString(protocols)];
  const known = new Set();
  for (const name of list) {
    if (!isToken(name)) throw new DOMException("WebSocket Constructor: The protocol header token is invalid.", "SyntaxError");
    if (known.has(name.toLowerCase())) throw new DOMException("WebSocket Constructor: The protocols header cannot have repeating values.", "SyntaxError");
    known.add(name.toLowerCase());
  }
  return list;
}

/**
 * https://websockets.spec.whatwg.org/#concept-websocket-establish: calls onOpen or onFail later. Returns an AbortController for the
 * attempt.
 */
export function connect(url, protocols, onOpen, onFail) {
  if (callOf(native.getAsyncContext()) === undefined) {
    throw new Error("Disallowed operation called within global scope: a WebSocket can be opened only while a request is handled.");
  }
  const controller = new AbortController();
  const headers = { upgrade: "websocket" };
  if (protocols.length > 0) headers["sec-websocket-protocol"] = protocols.join(", ");
  // Redirects are errors: the response must be a socket, and the body of any other response is not needed.
  fetchFrom(undefined, url, { headers, redirect: "error", signal: controller.signal })
    .then((response) => {
      const { status, webSocket } = response;
      if (webSocket === null) {
        response.body?.cancel();
        throw new TypeError(`the server answered with the status ${status} instead of 101`);
      }
      const isOffered = webSocket.protocol === "" || protocols.includes(webSocket.protocol);
      if (!isOffered) {
        controller.abort();
        throw new TypeError(`the server chose the subprotocol "${webSocket.protocol}", which was not offered`);
      }
      return webSocket;
    })
    .then(onOpen, onFail);
  return controller;
}
