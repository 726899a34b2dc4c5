// An incoming request. The front sends its head as one text, which is not parsed before the worker accesses it:
//
//     METHOD URL\n
//     Name: value\r\n
//     Name: value\r\n
import { Body } from "./body.js";
import { HeaderList } from "./header_list.js";
import { createRequest, RequestState, setHeadReader } from "./request.js";
import { native } from "../internal/native.js";
import { parseHref } from "../url/url.js";

function readMethod(state) {
  return state.head.slice(0, state.head.indexOf(" "));
}

function readURL(state) {
  const { head } = state;
  const url = head.slice(head.indexOf(" ") + 1, head.indexOf("\n"));
  // A URL that the parser rejects is shown as it was received, because the front accepted the request.
  return parseHref(url) ?? url;
}

// Every request has its own CF-Ray, created when its headers are first accessed.
let prefix = "";
let rays = 0;

function nextRay() {
  if (prefix === "") prefix = native.randomUUID().slice(0, 8);
  return `${prefix}${(++rays).toString(16).padStart(8, "0")}-ATL`;
}

function readHeaders(state) {
  const { head } = state;
  const start = head.indexOf("\n") + 1;
  const text = head.includes("\ncf-ray:") ? head : `${head}cf-ray: ${nextRay()}\r\n`;
  return HeaderList.fromText(text, start);
}

const NO_CERTIFICATE = Object.freeze({ certPresented: "0", certVerified: "NONE", certRevoked: "0" }); // of a client

/** https://developers.cloudflare.com/workers/runtime-apis/request/#incomingrequestcfproperties: the properties a node knows. */
function readCf(head) {
  const told = /\ncf-atoll-cf: (\{.*\})\r\n/.exec(head);
  if (told !== null) return JSON.parse(told[1]);
  const tls = /\ncf-atoll-tls: (\S+) (\S+)\r\n/.exec(head);
  const client = /\ncf-connecting-ip: (\S+)\r\n/.exec(head);
  const place = /\ncf-atoll-place: (\{.*\})\r\n/.exec(head);
  const accepted = /\naccept-encoding:[ \t]*([^\r\n]*)/i.exec(head);
  const cf = { colo: "ATL", httpProtocol: "HTTP/1.1", clientIp: client === null ? "" : client[1] };
  cf.clientAcceptEncoding = accepted === null ? "" : accepted[1].trimEnd();
  if (tls !== null) Object.assign(cf, { tlsVersion: tls[1], tlsCipher: tls[2], tlsClientAuth: { ...NO_CERTIFICATE } });
  if (place !== null) Object.assign(cf, JSON.parse(place[1]));
  return cf;
}

setHeadReader({ readMethod, readURL, readHeaders, readCf });

/**
 * A Request with immutable headers. `head`: see above. `body`: null, a Uint8Array (the whole body), or
 * { read(): Promise<Uint8Array | null>, cancel(reason): void } for a body that is still arriving. `signalFactory()`: creates the
 * AbortSignal on first access.
 */
export function makeIncomingRequest(head, body, signalFactory) {
  const state = new RequestState();
  state.head = head;
  state.guard = "immutable";
  state.makeSignal = signalFactory;
  if (body !== null) {
    state.body = new Body(body);
    state.body.isOfGet = head.startsWith("GET ") || head.startsWith("HEAD ");
  }
  return createRequest(state);
}
