// A request on its way in. The front sends its head as one text, and nothing of it is looked at before the worker looks:
//
//     METHOD URL\n
//     Name: value\r\n
//     Name: value\r\n
import { Body } from "./body.js";
import { HeaderList } from "./header_list.js";
import { createRequest, RequestState, setHeadReader } from "./request.js";
import { parseHref } from "../url/url.js";

function readMethod(state) {
  return state.head.slice(0, state.head.indexOf(" "));
}

function readURL(state) {
  const { head } = state;
  const url = head.slice(head.indexOf(" ") + 1, head.indexOf("\n"));
  // What the parser refuses is shown as it came: the front has taken it for a request all the same.
  return parseHref(url) ?? url;
}

function readHeaders(state) {
  return HeaderList.fromText(state.head, state.head.indexOf("\n") + 1);
}

setHeadReader({ readMethod, readURL, readHeaders });

/**
 * A Request whose headers are immutable. `head` as above; `body`: null, a Uint8Array (all of it), or
 * { read(): Promise<Uint8Array | null>, cancel(reason): void } for one that is still arriving; `signalFactory()`: makes the
 * AbortSignal when it is asked for.
 */
export function makeIncomingRequest(head, body, signalFactory) {
  const state = new RequestState();
  state.head = head;
  state.guard = "immutable";
  state.makeSignal = signalFactory;
  if (body !== null) state.body = new Body(body);
  return createRequest(state);
}
