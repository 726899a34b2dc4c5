// The tail event: what other workers did. https://developers.cloudflare.com/workers/runtime-apis/handlers/tail/
import { decodeText } from "../internal/text.js";
import { Event } from "../internal/wire.gen.js";
import { callHandler, defineEvent } from "./events.js";

/** A request of another worker: what may be shown is on the object, the rest has to be asked for. */
function readRequest({ unredacted, ...request }) {
  Object.defineProperty(request, "getUnredacted", { value: () => ({ ...request, ...unredacted }) });
  return request;
}

defineEvent(Event.TAIL, async (target, meta, body, call) => {
  const items = JSON.parse(decodeText(body));
  for (const { event } of items) {
    if (event.request !== undefined) event.request = readRequest(event.request);
  }
  await callHandler(target, "tail", items, call);
  return {};
});
