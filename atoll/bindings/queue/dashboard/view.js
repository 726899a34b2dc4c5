// The pages of queues: all of them with their backlog, and one with its messages.
import { count } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { Ago, Badge } from "#dashboard/parts/pieces.js";
import { Resources } from "#dashboard/parts/things.js";
import { consumerOf } from "./consumer.js";
import { OneQueue } from "./queue.js";

const COLUMNS = [
  { name: "State", of: (queue) => html`<${State} ...${queue} />` },
  { name: "Waiting", number: true, of: ({ waiting }) => count(waiting) },
  { name: "Delayed", number: true, of: ({ delayed }) => count(delayed) },
  { name: "Oldest", of: ({ oldest_at }) => html`<${Ago} at=${oldest_at} />` },
  { name: "Consumer", of: consumerOf },
];

function State({ paused, dropped, consumer, pulls }) {
  const state = paused ? "paused" : consumer || pulls ? "delivers" : "no consumer";
  return html`<${Badge} kind=${{ paused: "bad", delivers: "good" }[state] ?? ""}>${state}<//>${dropped > 0 ? html` <${Badge} kind="bad">${count(dropped)} dropped<//>` : ""}`;
}

export function View({ rest: [name] }) {
  if (name === undefined) {
    return html`<${Resources} at="queues" path="/api/queues" field="queues" noun="queue" columns=${COLUMNS} command=${`atoll queues create jobs --api ${location.origin}`} />`;
  }
  return html`<${OneQueue} name=${name} />`;
}
