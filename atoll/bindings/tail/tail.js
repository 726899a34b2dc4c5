// The tail event: records of the calls of other workers. https://developers.cloudflare.com/workers/runtime-apis/handlers/tail/
import { defineEvent } from "#web/internal/events.js";
import { decodeText } from "#web/internal/text.js";
import { callHandler } from "#web/worker/events.js";

/** A request to another worker: the redacted form is on the object, the full one behind getUnredacted(). */
function readRequest({ unredacted, ...request }) {
  Object.defineProperty(request, "getUnredacted", { value: () => ({ ...request, ...unredacted }) });
  return request;
}

defineEvent("tail", async (target, meta, body, call) => {
  const items = JSON.parse(decodeText(body));
  for (const { event } of items) {
    if (event.request !== undefined) event.request = readRequest(event.request);
  }
  await callHandler(target, "tail", items, call);
  return {};
});
