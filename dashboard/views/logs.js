// Stored calls of a worker, searched by the node. The search is in the address, so it can be sent to others.
import { useState } from "preact/hooks";
import { at, get } from "../core/api.js";
import { html } from "../core/html.js";
import { useAction, useQuery } from "../core/query.js";
import { route, setQuery } from "../core/router.js";
import { Call } from "../parts/call.js";
import { Copy } from "../parts/pieces.js";
import { Empty, Failed, Loaded } from "../parts/states.js";

const OUTCOMES = ["ok", "exception", "exceededCpu", "exceededMemory", "exceededWallTime", "canceled", "responseStreamDisconnected", "loadShed", "internalError"];
const LEVELS = ["debug", "info", "log", "warn", "error"];
const AGES = [["", "any time"], ["900", "15 minutes"], ["3600", "hour"], ["86400", "day"]];
const PAGE = 100;

export function Logs({ worker }) {
  const { query } = route.value;
  const field = (name) => query.get(name) ?? "";
  const asked = { text: field("text"), outcome: field("outcome"), level: field("level"), version: field("version") };
  const since = () => (field("age") ? Date.now() - Number(field("age")) * 1_000 : "");
  const path = at`/api/workers/${worker.name}/logs`;
  const found = useQuery((signal) => get(path, { ...asked, since: since(), limit: PAGE }, { signal }), [worker.name, ...Object.values(asked), field("age")]);
  return html`<form class="bar" role="search" onSubmit=${(event) => event.preventDefault()}>
      <input type="search" aria-label="Text in a console line or error" placeholder="Text in lines or errors" value=${asked.text} onChange=${(event) => setQuery({ text: event.target.value })} />
      <label>Outcome <select value=${asked.outcome} onChange=${(event) => setQuery({ outcome: event.target.value })}>
        <option value="">any</option>${OUTCOMES.map((each) => html`<option>${each}</option>`)}
      </select></label>
      <label>Level, at least <select value=${asked.level} onChange=${(event) => setQuery({ level: event.target.value })}>
        <option value="">any</option>${LEVELS.map((each) => html`<option>${each}</option>`)}
      </select></label>
      <label>Last <select value=${field("age")} onChange=${(event) => setQuery({ age: event.target.value })}>
        ${AGES.map(([value, name]) => html`<option value=${value}>${name}</option>`)}
      </select></label>
      <button type="button" onClick=${found.again}>Refresh</button>
      <${Copy} text=${location.href} label="Copy link" />
    </form>
    <${Loaded} query=${found}>${(page) => html`<${Page} key=${JSON.stringify([asked, field("age")])} page=${page} path=${path} asked=${asked} since=${since} worker=${worker} />`}<//>`;
}

function Page({ page, path, asked, since, worker }) {
  const [older, setOlder] = useState({ logs: [], cursor: page.cursor ?? "" });
  const more = useAction(async () => {
    const next = await get(path, { ...asked, since: since(), limit: PAGE, cursor: older.cursor });
    setOlder({ logs: [...older.logs, ...next.logs], cursor: next.cursor ?? "" });
  });
  const rows = [...page.logs, ...older.logs];
  const isFiltered = Object.values(asked).some(Boolean);
  if (!rows.length) {
    return isFiltered
      ? html`<${Empty} title="No call fits"><p><button type="button" onClick=${() => setQuery({ text: "", outcome: "", level: "", version: "", age: "" })}>Show all calls</button></p><//>`
      : html`<${Empty} title="No calls in this time"><p>Calls are kept for some days. Make one:</p><pre tabindex="0"><code>curl ${worker.url}</code></pre><//>`;
  }
  return html`${page.dropped > 0 && html`<p class="soft small">${page.dropped.toLocaleString("en")} calls were counted and not kept, because there were more than the setting <code>log_rate</code> allows.</p>`}
    <${Histogram} rows=${rows} />
    <div class="calls-list">${rows.map((entry, place) => html`<${Call} key=${`${entry.timestamp} ${place}`} entry=${entry} worker=${worker} />`)}</div>
    ${more.error && html`<${Failed} error=${more.error} />`}
    ${older.cursor && html`<p class="more"><button type="button" disabled=${more.busy} onClick=${more.run}>${more.busy ? "Loading…" : "Older calls"}</button></p>`}`;
}

const BARS = 40;

/** When the calls of the list happened; failed ones in red. */
function Histogram({ rows }) {
  const times = rows.map((each) => Date.parse(each.timestamp));
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const bars = Array.from({ length: BARS }, () => [0, 0]);
  rows.forEach((each, place) => {
    const bar = bars[Math.min(BARS - 1, Math.floor(((times[place] - first) / (last - first || 1)) * BARS))];
    bar[0] += 1;
    if (each.outcome !== "ok" || each.status >= 500) bar[1] += 1;
  });
  const most = Math.max(...bars.map(([count]) => count));
  const range = `${new Date(first).toLocaleTimeString("en-GB")} to ${new Date(last).toLocaleTimeString("en-GB")}`;
  const bad = bars.reduce((sum, [, errors]) => sum + errors, 0);
  return html`<div class="histogram">
    <svg viewBox=${`0 0 ${BARS * 5} 40`} preserveAspectRatio="none" role="img" aria-label=${`${rows.length} calls, ${bad} of them failed, ${range}`}>
      ${bars.map(([count, errors], place) => html`<rect x=${place * 5} width="4" y=${40 - (count / most) * 40} height=${(count / most) * 40} />
        ${errors > 0 && html`<rect class="bad" x=${place * 5} width="4" y=${40 - (errors / most) * 40} height=${(errors / most) * 40} />`}`)}
    </svg>
    <p class="soft small">${rows.length} calls, ${range}</p>
  </div>`;
}
