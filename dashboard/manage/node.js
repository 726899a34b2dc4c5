// The node as it is now: who uses it, and a map of its engines and isolates. Area is memory, colour is CPU time.
import { useMemo, useState } from "preact/hooks";
import { at, call, get } from "../core/api.js";
import { bytes, count, ms, share } from "../core/format.js";
import { html } from "../core/html.js";
import { useAction, useQuery } from "../core/query.js";
import { Link, workerPath } from "../core/router.js";
import { chooseTenant, may } from "../core/session.js";
import { Ago, Badge, Dialog, More, Text } from "../parts/pieces.js";
import { Failed, Loaded } from "../parts/states.js";
import { useStream } from "../parts/stream.js";
import { squares } from "./treemap.js";

const HEATS = [1, 10, 40]; // percent of a core, from which a cell is warmer
const MOST_CELLS = 400;
const LEAST = 1_048_576; // bytes that a cell stands for at least: smaller ones could not be hit

export const percent = (value) => (value === null ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value)} %`);
const age = (seconds) => ms(seconds * 1_000);

export function NodeNow() {
  const query = useStream("/api/node/engines/live", "engines");
  return html`<${Loaded} query=${query}>${(now) => html`<${Figures} now=${now} /><${Users} now=${now} /><${Engines} now=${now} />${now.node !== "" && html`<${Members} />`}`}<//>`;
}

function Figures({ now }) {
  const used = now.memory_total_bytes - now.memory_free_bytes;
  const lag = now.loop_lag_ms;
  return html`<dl class="figures">
    <div><dt>Calls per second</dt><dd>${now.calls_per_second === null ? "–" : count(Math.round(now.calls_per_second * 10) / 10)}</dd></div>
    <div><dt>In flight, waiting</dt><dd>${count(now.counts.in_flight)}, ${count(now.counts.queued)}</dd></div>
    <div><dt>Loop lag, p99</dt><dd class=${lag.p99 > 50 ? "bad-text" : ""} title=${`at most ${ms(lag.max)} in the last two minutes`}>${ms(lag.p99)}</dd></div>
    <div><dt>Memory of the machine</dt><dd class=${now.is_short_of_memory ? "bad-text" : ""}>${share(used, now.memory_total_bytes)}</dd></div>
    <div><dt>Engines replaced</dt><dd>${count(now.counts.restarts)}</dd></div>
    <div><dt>Calls refused</dt><dd>${count(now.counts.refused)}</dd></div>
    <div><dt>Isolates condemned</dt><dd>${count(now.counts.condemned)}</dd></div>
    <div><dt>Up for</dt><dd>${age(now.uptime_seconds)}</dd></div>
  </dl>
  ${now.is_short_of_memory && html`<p class="notice bad" role="status">The machine is short of memory: idle workers are unloaded.</p>`}`;
}

/** Those who use most come first: who makes the node slow. */
function Users({ now }) {
  const most = now.cores * 100;
  return html`<section><h2>Who uses the node</h2>
    ${now.tenants.length === 0 && html`<p class="soft">No worker is loaded at the moment.</p>`}
    <${More} rows=${now.tenants} size=${10}>${(some) => some.length > 0 && html`<div class="cards"><table>
      <caption class="hidden">Tenants by the CPU time that they use now</caption>
      <thead><tr><th scope="col">Tenant</th><th scope="col">CPU now</th><th scope="col" class="number">Memory</th><th scope="col" class="number">In flight</th><th scope="col" class="number">Isolates</th><th scope="col" class="number">CPU since the start</th></tr></thead>
      <tbody>${some.map((each) => html`<tr key=${each.name}>
        <th scope="row"><${Link} to=${`/manage/tenants/${encodeURIComponent(each.name)}`}><${Text}>${each.name}<//><//></th>
        <td data-label="CPU now"><span class="used-of"><${Bar} part=${(each.cpu_percent ?? 0) / most} /><span class="number">${percent(each.cpu_percent)}</span></span></td>
        <td data-label="Memory" class="number">${bytes(each.memory_bytes)}</td>
        <td data-label="In flight" class="number">${count(each.in_flight)}</td>
        <td data-label="Isolates" class="number">${count(each.loaded)}</td>
        <td data-label="CPU since the start" class="number">${ms(each.cpu_ms)}</td>
      </tr>`)}</tbody>
    </table></div>`}<//>
  </section>`;
}

/** A part of a whole. The number beside it says the same. */
export const Bar = ({ part }) => html`<span class=${`track ${part > 0.8 ? "warn" : ""}`} aria-hidden="true"><i style=${{ width: `${Math.min(100, Math.max(part * 100, part ? 1 : 0))}%` }}></i></span>`;

function Engines({ now }) {
  const [open, setOpen] = useState(null); // an isolate, by its engine and number
  const shown = open && now.engines.find(({ pid }) => pid === open.pid)?.isolates.find(({ id }) => id === open.id);
  return html`<section><h2>Engines</h2>
    <p class="soft small">A square is one isolate: its area is memory, and the warmer it is, the more CPU time it uses. The process of the node itself takes ${bytes(now.node_memory_bytes)} and ${percent(now.node_cpu_percent)} of a core.</p>
    ${now.engines.length === 0 && html`<p class="notice bad" role="alert">No engine runs: no worker can answer.</p>`}
    ${now.engines.map((engine) => html`<${Engine} key=${engine.pid} engine=${engine} onOpen=${(id) => setOpen({ pid: engine.pid, id })} />`)}
    ${now.leaving > 0 && html`<p class="soft" role="status">${now.leaving} replaced ${now.leaving === 1 ? "engine finishes its" : "engines finish their"} calls.</p>`}
    ${now.left_out > 0 && html`<p class="soft">${count(now.left_out)} smaller isolates are not shown.</p>`}
    ${open && html`<${OneIsolate} pid=${open.pid} isolate=${shown ?? null} onClose=${() => setOpen(null)} />`}
  </section>`;
}

function Engine({ engine, onOpen }) {
  const restart = useAction(() => call("POST", at`/api/node/engines/${engine.pid}/restart`));
  const { isolates } = engine;
  return html`<section class="engine" aria-label=${engine.name}>
    <div class="head"><h3>${engine.name}</h3>
      <span class="soft small">${engine.serves === "all" ? "" : html`<${Badge}>only <${Text}>${engine.serves}<//><//> `}pid ${engine.pid} · ${bytes(engine.memory_bytes)} · ${percent(engine.cpu_percent)} CPU · ${count(engine.in_flight)} in flight${engine.waiting ? `, ${count(engine.waiting)} wait` : ""} · ${count(engine.loaded)} isolates · up ${age(engine.uptime_seconds)}</span>
      ${may("admin") && html`<button type="button" class="quiet" disabled=${restart.busy || restart.done} onClick=${() => restart.run()}>${restart.done ? "Is replaced…" : "Replace"}<span class="hidden"> ${engine.name}</span></button>`}
    </div>
    ${restart.error && html`<${Failed} error=${restart.error} />`}
    ${isolates.length === 0 ? html`<p class="soft">Nothing is loaded in it.</p>` : html`<${TreeMap} engine=${engine} onOpen=${onOpen} />
      <details><summary>The same as a table</summary><${IsolateTable} isolates=${isolates} onOpen=${onOpen} /></details>`}
  </section>`;
}

const heatOf = ({ cpu_percent: cpu }) => HEATS.filter((bound) => (cpu ?? 0) >= bound).length;
const marksOf = ({ marks, state, objects }) => [...marks, ...(state === "ready" ? [] : [state]), ...(objects ? ["objects"] : [])];

function TreeMap({ engine, onOpen }) {
  const some = engine.isolates.slice(0, MOST_CELLS);
  const sizes = some.map((each) => Math.max(each.memory_bytes ?? 0, LEAST));
  const boxes = useMemo(() => squares(sizes), [sizes.join()]);
  const words = `${engine.isolates.length} isolates of ${engine.name}; the table below lists them`;
  return html`<div class="tree" role="img" aria-label=${words}>${some.map((each, place) => {
    const { x, y, width, height } = boxes[place];
    const marks = marksOf(each);
    return html`<div key=${each.id} class=${`cell heat${heatOf(each)} ${each.marks.length ? "is-marked" : ""} ${each.state === "ready" ? "" : "is-leaving"}`} title=${`${each.worker} of ${each.tenant}: ${bytes(each.memory_bytes)}, ${percent(each.cpu_percent)} CPU${marks.length ? `, ${marks.join(", ")}` : ""}`}
      style=${{ left: `${x}%`, top: `${y}%`, width: `${width}%`, height: `${height}%` }} onClick=${() => onOpen(each.id)}>
      ${width > 9 && height > 12 && html`<span><b><${Text} most=${40}>${each.worker}<//></b>${height > 26 && html`<i><${Text} most=${40}>${each.tenant}<//></i><i>${bytes(each.memory_bytes)} · ${percent(each.cpu_percent)}</i>`}${marks.length > 0 && html`<i>${marks.join(", ")}</i>`}</span>`}
    </div>`;
  })}</div>`;
}

function IsolateTable({ isolates, onOpen }) {
  return html`<${More} rows=${isolates} size=${50}>${(some) => html`<div class="cards"><table>
    <thead><tr><th scope="col">Worker</th><th scope="col">Tenant</th><th scope="col" class="number">Memory</th><th scope="col" class="number">CPU now</th><th scope="col" class="number">In flight</th><th scope="col">State</th></tr></thead>
    <tbody>${some.map((each) => html`<tr key=${each.id}>
      <th scope="row"><button type="button" class="quiet" onClick=${() => onOpen(each.id)}><${Text} most=${60}>${each.worker}<//></button></th>
      <td data-label="Tenant"><${Text}>${each.tenant}<//></td><td data-label="Memory" class="number">${bytes(each.memory_bytes)}</td><td data-label="CPU now" class="number">${percent(each.cpu_percent)}</td><td data-label="In flight" class="number">${count(each.in_flight)}</td>
      <td data-label="State">${[each.state, ...each.marks, ...(each.objects ? ["objects"] : [])].map((mark) => html`<${Badge} kind=${each.marks.includes(mark) ? "bad" : ""}>${mark}<//> `)}</td>
    </tr>`)}</tbody>
  </table></div>`}<//>`;
}

function OneIsolate({ pid, isolate, onClose }) {
  const [last] = useState(isolate);
  const unload = useAction(() => call("POST", at`/api/node/engines/${pid}/isolates/${last.id}/unload`));
  const shown = isolate ?? last;
  const visit = () => chooseTenant(shown.tenant);
  return html`<${Dialog} title="An isolate" onClose=${onClose}>
    <dl class="facts">
      <div><dt>Worker</dt><dd><span onClickCapture=${visit}><${Link} to=${workerPath(shown.worker)}><${Text}>${shown.worker}<//><//></span></dd></div>
      <div><dt>Tenant</dt><dd><${Link} to=${`/manage/tenants/${encodeURIComponent(shown.tenant)}`}><${Text}>${shown.tenant}<//><//></dd></div>
      <div><dt>Version</dt><dd class="mono wrap">${shown.version_id}</dd></div>
      <div><dt>State</dt><dd>${isolate ? [shown.state, ...shown.marks].join(", ") : "gone"}</dd></div>
      <div><dt>Memory</dt><dd>${bytes(shown.memory_bytes)}</dd></div>
      <div><dt>CPU time</dt><dd>${percent(shown.cpu_percent)} of a core now, ${ms(shown.cpu_ms)} since it was loaded</dd></div>
      <div><dt>Calls</dt><dd>${count(shown.in_flight)} in flight, ${count(shown.sockets)} WebSockets</dd></div>
      <div><dt>Loaded</dt><dd>${age(shown.age_seconds)} ago${shown.in_flight ? "" : `, idle for ${age(shown.idle_seconds)}`}</dd></div>
    </dl>
    ${unload.error && html`<${Failed} error=${unload.error} />`}
    <p role="status" class="told">${unload.done ? "It is unloaded once its calls are over. The next call loads the worker again." : ""}</p>
    <p class="right">${may("admin") && isolate && html`<button type="button" disabled=${unload.busy || unload.done} onClick=${() => unload.run()}>Unload</button>`}<button type="button" onClick=${onClose}>Close</button></p>
  <//>`;
}

/** The nodes of a cluster. */
function Members() {
  const query = useQuery(async (signal) => (await get("/api/nodes", {}, { signal })).nodes, [], { every: 5_000 });
  const drain = useAction(async (name) => {
    await call("POST", at`/api/nodes/${name}/drain`);
    query.again();
  });
  return html`<section><h2>Nodes of the cluster</h2>
    ${drain.error && html`<${Failed} error=${drain.error} />`}
    <${Loaded} query=${query}>${(nodes) => html`<div class="cards"><table>
      <thead><tr><th scope="col">Node</th><th scope="col">State</th><th scope="col" class="number">Changes behind</th><th scope="col">Release</th><th scope="col">Started</th><th scope="col"><span class="hidden">Acts</span></th></tr></thead>
      <tbody>${nodes.map((each) => html`<tr key=${each.name}>
        <th scope="row"><${Text}>${each.name}<//> ${each.is_this && html`<${Badge}>this one<//>`}</th>
        <td data-label="State"><${Badge} kind=${each.state === "serving" ? "good" : each.state === "lost" ? "bad" : ""}>${each.state}<//></td>
        <td data-label="Changes behind" class="number">${count(each.behind)}</td><td data-label="Release">${each.release}</td><td data-label="Started"><${Ago} at=${each.started_at} /></td>
        <td class="right">${may("admin") && each.state === "serving" && html`<button type="button" class="quiet" disabled=${drain.busy} onClick=${() => drain.run(each.name)}>Drain</button>`}</td>
      </tr>`)}</tbody>
    </table></div>`}<//>
  </section>`;
}
