// Workers as rows, with their last hour. Those that fail come first.
import { useMemo } from "preact/hooks";
import { all } from "../core/api.js";
import { count, ms, share } from "../core/format.js";
import { html } from "../core/html.js";
import { useQuery } from "../core/query.js";
import { Link, route, setQuery, workerPath } from "../core/router.js";
import { may } from "../core/session.js";
import { Ago, Badge, More, Spark, Text } from "../parts/pieces.js";
import { Empty, Loaded } from "../parts/states.js";

const SORTS = {
  failing: { name: "failing first", by: (a, b) => b.errors / (b.calls || 1) - a.errors / (a.calls || 1) || b.calls - a.calls },
  calls: { name: "most calls", by: (a, b) => b.calls - a.calls },
  slow: { name: "slowest", by: (a, b) => (b.p99_ms ?? -1) - (a.p99_ms ?? -1) },
  cpu: { name: "most CPU", by: (a, b) => (b.cpu_p99_ms ?? -1) - (a.cpu_p99_ms ?? -1) },
  new: { name: "last deployed", by: (a, b) => b.updated_at.localeCompare(a.updated_at) },
  name: { name: "name", by: (a, b) => a.name.localeCompare(b.name) },
};
const MOST = 10_000;
const FAILING = 0.01; // part of the calls

export function Home() {
  const query = useQuery((signal) => all("/api/overview", "workers", MOST, { signal }), [], { every: 5_000 });
  return html`<div class="page">
    <h1>Workers</h1>
    <${Loaded} query=${query}>${(workers) => (workers.length ? html`<${Workers} workers=${workers} />` : html`<${First} />`)}<//>
  </div>`;
}

function First() {
  return html`<${Empty} title="No worker yet">
    <p>A minute from an empty folder to a worker that answers:</p>
    <pre tabindex="0"><code>atoll init hello my-worker${"\n"}atoll deploy my-worker --api ${location.origin}</code></pre>
    ${!may("deploy") && html`<p class="soft">Your token may only look. Deploying needs the scope <code>deploy</code>.</p>`}
  <//>`;
}

function Workers({ workers }) {
  const { query } = route.value;
  const words = (query.get("q") ?? "").toLowerCase();
  const sort = SORTS[query.get("sort")] ?? SORTS.failing;
  const rows = useMemo(() => workers.filter(({ name }) => name.includes(words)).sort(sort.by), [workers, words, sort]);
  const calls = workers.reduce((sum, each) => sum + each.calls, 0);
  const errors = workers.reduce((sum, each) => sum + each.errors, 0);
  const failing = workers.filter((each) => each.errors).length;
  return html`<dl class="figures">
      <div><dt>Workers</dt><dd>${count(workers.length)}</dd></div>
      <div><dt>Calls, last hour</dt><dd>${count(calls)}</dd></div>
      <div><dt>Errors</dt><dd class=${errors ? "bad-text" : ""}>${share(errors, calls)}</dd></div>
      <div><dt>Workers with errors</dt><dd class=${failing ? "bad-text" : ""}>${count(failing)}</dd></div>
    </dl>
    <div class="bar">
      <input type="search" aria-label="Filter by name" placeholder="Filter by name" value=${query.get("q") ?? ""} onInput=${(event) => setQuery({ q: event.target.value })} />
      <label>Order
        <select value=${query.get("sort") ?? "failing"} onChange=${(event) => setQuery({ sort: event.target.value })}>
          ${Object.entries(SORTS).map(([key, { name }]) => html`<option value=${key}>${name}</option>`)}
        </select>
      </label>
    </div>
    ${rows.length === 0 && html`<${Empty} title="No worker has this in its name"><p><button type="button" onClick=${() => setQuery({ q: "" })}>Show all</button></p><//>`}
    <${More} rows=${rows}>${(some) => some.length > 0 && html`<${Table} rows=${some} />`}<//>
    ${workers.length >= MOST && html`<p class="soft">Only the first ${count(MOST)} workers, by name, are here.</p>`}`;
}

function Table({ rows }) {
  return html`<div class="cards"><table>
    <caption class="hidden">Workers and their last hour</caption>
    <thead><tr>
      <th scope="col">Worker</th><th scope="col">Calls</th><th scope="col" class="number">Errors</th>
      <th scope="col" class="number">p99</th><th scope="col" class="number">CPU p99</th><th scope="col">Version</th><th scope="col">Deployed</th>
    </tr></thead>
    <tbody>${rows.map((each) => html`<${Row} key=${each.id} worker=${each} />`)}</tbody>
  </table></div>`;
}

function Row({ worker }) {
  const isNearLimit = worker.cpu_p99_ms > worker.cpu_limit_ms * 0.8;
  return html`<tr>
    <th scope="row">
      <${Link} to=${workerPath(worker.name)}><${Text}>${worker.name}<//><//>
      ${worker.errors >= worker.calls * FAILING && worker.errors > 0 && html` <${Badge} kind="bad">failing<//>`}
    </th>
    <td data-label="Calls" class="calls">
      <${Spark} values=${worker.spark} errors=${worker.errors_spark} label=${`${worker.calls} calls and ${worker.errors} errors in the last hour`} />
      <span class="number">${worker.is_counted ? count(worker.calls) : "not counted"}</span>
    </td>
    <td data-label="Errors" class=${`number ${worker.errors ? "bad-text" : "soft"}`}>${share(worker.errors, worker.calls)}</td>
    <td data-label="p99" class="number">${ms(worker.p99_ms)}</td>
    <td data-label="CPU p99" class=${`number ${isNearLimit ? "warn-text" : ""}`} title=${`limit: ${worker.cpu_limit_ms} ms`}><span>${ms(worker.cpu_p99_ms)}${isNearLimit && html`<span class="small"> of ${worker.cpu_limit_ms}</span>`}</span></td>
    <td data-label="Version"><span><${Link} to=${workerPath(worker.name, "versions")}>${worker.version}<//>${worker.versions > 1 && html` <${Badge}>split<//>`}</span></td>
    <td data-label="Deployed"><${Ago} at=${worker.updated_at} /></td>
  </tr>`;
}
