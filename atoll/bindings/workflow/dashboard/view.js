// The pages of workflows: all of them, one with its instances, and one instance with its steps.
import { useState } from "preact/hooks";
import { at, call, get } from "#dashboard/core/api.js";
import { count } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { useAction, useQuery } from "#dashboard/core/query.js";
import { go, Link, route, setQuery, workerPath } from "#dashboard/core/router.js";
import { may } from "#dashboard/core/session.js";
import { Ago, Dialog, Text } from "#dashboard/parts/pieces.js";
import { Empty, Failed, Loaded } from "#dashboard/parts/states.js";
import { cursorNow, PageTurn, Resources, Rows } from "#dashboard/parts/things.js";
import { isJson } from "#dashboard/core/bytes.js";
import { OneInstance, Status } from "./instance.js";

const STATUSES = ["queued", "running", "waiting", "paused", "waitingForPause", "complete", "errored", "terminated"];
const PAGE = 100;
const COLUMNS = [
  { name: "Instances", number: true, of: ({ instances }) => count(instances) },
  { name: "Worker", of: ({ worker }) => html`<${Link} to=${workerPath(worker)}><${Text}>${worker}<//><//>` },
  { name: "Class", of: ({ class_name: name }) => html`<code><${Text}>${name}<//></code>` },
  { name: "Changed", of: ({ changed_at: changed }) => html`<${Ago} at=${changed} />` },
];
const ABOUT = html`<p>A workflow is a class of a worker, under <code>workflows</code> in its config. An example to begin with:</p><pre tabindex="0"><code>atoll init workflow my-worker</code></pre>`;

export function View({ rest: [name, id] }) {
  if (name === undefined) return html`<${Resources} at="workflows" path="/api/workflows" field="workflows" noun="workflow" columns=${COLUMNS} canMake=${false} about=${ABOUT} />`;
  return id === undefined ? html`<${OneWorkflow} name=${name} />` : html`<${OneInstance} key=${id} name=${name} id=${id} />`;
}

function OneWorkflow({ name }) {
  const path = at`/api/workflows/${name}`;
  const after = cursorNow();
  const status = route.value.query.get("status") ?? "";
  const [open, setOpen] = useState(false);
  const query = useQuery(
    async (signal) => {
      const [workflow, page] = await Promise.all([get(path, {}, { signal }), get(`${path}/instances`, { limit: PAGE, cursor: after, status }, { signal })]);
      return { workflow, page };
    },
    [path, after, status],
    { every: 3_000 },
  );
  if (query.error?.status === 404) return html`<${Empty} title="There is no such workflow" whole><p>It may be deleted, or belong to another tenant. <${Link} to="/data/workflows">All workflows<//></p><//>`;
  return html`<h1><${Text}>${name}<//></h1>
    <${Loaded} query=${query}>${({ workflow, page }) => html`
      <dl class="figures">${STATUSES.filter((each) => workflow.instances[each]).map((each) => html`<div key=${each}><dt>${each}</dt><dd class=${each === "errored" ? "bad-text" : ""}>${count(workflow.instances[each])}</dd></div>`)}</dl>
      <div class="bar">
        <label>Status <select value=${status} onChange=${(event) => setQuery({ status: event.target.value, after: "" })}><option value="">any</option>${STATUSES.map((each) => html`<option>${each}</option>`)}</select></label>
        ${may("deploy") && html`<button type="button" class="primary" onClick=${() => setOpen(true)}>Start an instance</button>`}
      </div>
      ${page.instances.length === 0
        ? html`<${Empty} title=${status ? "No instance has this status" : "No instance yet"}>${status ? html`<p><button type="button" onClick=${() => setQuery({ status: "" })}>Show all</button></p>` : html`<p>Workers start them with <code>env.NAME.create()</code>. From a terminal:</p><pre tabindex="0"><code>atoll workflows trigger ${name} --api ${location.origin}</code></pre>`}<//>`
        : html`<${Rows} rows=${page.instances} caption="Instances, the newest first" columns=${instanceColumns(name)} />`}
      <${PageTurn} cursor=${page.cursor} />`}<//>
    ${open && html`<${Start} path=${path} name=${name} onClose=${() => setOpen(false)} />`}`;
}

const instanceColumns = (name) => [
  { name: "Instance", of: ({ id }) => html`<${Link} to=${at`/data/workflows/${name}/${id}`} class="mono"><${Text} most=${80}>${id}<//><//>` },
  { name: "Status", of: ({ status }) => html`<${Status} status=${status} />` },
  { name: "Made", of: ({ created_at: made }) => html`<${Ago} at=${made} />` },
  { name: "Changed", of: ({ changed_at: changed }) => html`<${Ago} at=${changed} />` },
  { name: "Kept until", of: ({ expires_at: end }) => html`<${Ago} at=${end} />` },
];

function Start({ path, name, onClose }) {
  const [id, setId] = useState("");
  const [params, setParams] = useState("{}");
  const start = useAction(() => {
    // The parameters are sent as they were typed: parsing them would round large numbers.
    const text = `{${id ? `"id":${JSON.stringify(id)},` : ""}"params":${params}}`;
    return call("POST", `${path}/instances`, new Blob([text], { type: "application/json" }));
  });
  const submit = async (event) => {
    event.preventDefault();
    const made = isJson(params) ? await start.run() : null;
    if (made !== null) go(at`/data/workflows/${name}/${made.id}`);
  };
  return html`<${Dialog} title="Start an instance" onClose=${onClose}>
    <form onSubmit=${submit}>
      <label>Parameters <textarea class="mono" rows="6" required spellcheck="false" autofocus value=${params} onInput=${(event) => setParams(event.target.value)}></textarea></label>
      <p class="bad-text" role="status">${isJson(params) ? "" : "This is not JSON."}</p>
      <label>Id, or empty for a random one <input type="text" maxlength="100" spellcheck="false" autocomplete="off" value=${id} onInput=${(event) => setId(event.target.value)} /></label>
      ${start.error && html`<${Failed} error=${start.error} />`}
      <p class="right"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${start.busy || !isJson(params)}>${start.busy ? "Starting…" : "Start"}</button></p>
    </form>
  <//>`;
}
