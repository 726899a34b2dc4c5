// The errors of a worker in groups of one kind: how often, since when, and where in its source. One opens into its last call.
import { useState } from "preact/hooks";
import { at, get } from "../core/api.js";
import { count } from "../core/format.js";
import { html } from "../core/html.js";
import { useAction, useQuery } from "../core/query.js";
import { Call } from "../parts/call.js";
import { Ago, Text } from "../parts/pieces.js";
import { Empty, Failed, Loaded, Loading } from "../parts/states.js";

const PAGE = 100;

export function Errors({ worker }) {
  const ask = (cursor, signal) => get("/api/errors", { worker: worker.name, limit: PAGE, cursor }, { signal });
  const query = useQuery((signal) => ask("", signal), [worker.name], { every: 10_000 });
  const [older, setOlder] = useState({ errors: [], cursor: null });
  const more = useAction(async () => {
    const next = await ask(older.cursor ?? query.data.cursor);
    setOlder({ errors: [...older.errors, ...next.errors], cursor: next.cursor ?? "" });
  });
  return html`<${Loaded} query=${query}>${(page) => {
    const rows = [...page.errors, ...older.errors];
    const cursor = older.cursor ?? page.cursor;
    if (!rows.length) return html`<${Empty} title="No error is known"><p class="soft">Errors of calls are grouped by their kind and place, and kept for some days.</p><//>`;
    return html`<p class="soft small">Errors of one kind and place are one row; those seen last come first.</p>
      <div class="calls-list">${rows.map((each) => html`<${Group} key=${each.fingerprint} group=${each} worker=${worker} />`)}</div>
      ${more.error && html`<${Failed} error=${more.error} />`}
      ${cursor && html`<p class="more"><button type="button" disabled=${more.busy} onClick=${more.run}>${more.busy ? "Loading…" : "Older errors"}</button></p>`}`;
  }}<//>`;
}

function Group({ group, worker }) {
  const [open, setOpen] = useState(false);
  return html`<details class="call group is-bad" onToggle=${(event) => setOpen(event.target.open)}>
    <summary>
      <span class="what"><span class="badge bad">${count(group.count)} ×</span></span>
      <span class="said-first"><b><${Text} most=${200}>${group.message}<//></b><br /><span class="mono soft"><${Text} most=${160}>${group.frame || "no place is known"}<//></span></span>
      <span class="soft small number">last <${Ago} at=${group.last_seen} /></span>
    </summary>
    ${open && html`<div class="inside"><p class="soft small">First seen <${Ago} at=${group.first_seen} />. The last one:</p><${Example} group=${group} worker=${worker} /></div>`}
  </details>`;
}

/** The call with the last error of a group: the stored records begin at it. */
function Example({ group, worker }) {
  const query = useQuery((signal) => get(at`/api/workers/${worker.name}/logs`, { cursor: group.example, limit: 1 }, { signal }), [group.example]);
  if (query.error) return html`<${Failed} error=${query.error} again=${query.again} />`;
  if (!query.data) return html`<${Loading} slow=${query.slow} />`;
  const [entry] = query.data.logs;
  if (!entry) return html`<p class="soft">Its call is not kept any more.</p>`;
  return html`<${Call} entry=${entry} worker=${worker} open />`;
}
