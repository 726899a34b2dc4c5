// A worker over time: calls, errors, durations and CPU against its limit, with deploys as lines, and what it is joined to.
import { useMemo } from "preact/hooks";
import { at, get } from "../core/api.js";
import { count, ms, share } from "../core/format.js";
import { html } from "../core/html.js";
import { useQuery } from "../core/query.js";
import { Link, route, setQuery, workerPath } from "../core/router.js";
import { Chart } from "../parts/chart.js";
import { Ago, Text } from "../parts/pieces.js";
import { Loaded } from "../parts/states.js";
import { placeOf } from "./data.js";

const RANGES = [
  ["15m", "15 min", 900, 10],
  ["1h", "1 hour", 3_600, 60],
  ["24h", "24 hours", 86_400, 900],
  ["7d", "7 days", 604_800, 7_200],
  ["30d", "30 days", 2_592_000, 21_600],
];
const COLOURS = ["bad", "warn", "violet", "soft"];
const NAMES = {
  exception: "exceptions",
  status_5xx: "answers 5xx",
  exceededCpu: "CPU limit",
  exceededMemory: "memory limit",
  exceededWallTime: "time limit",
  loadShed: "refused, overload",
  internalError: "internal errors",
  canceled: "canceled by clients",
};

export function RangeChoice({ range }) {
  return html`<div class="choice" role="group" aria-label="Time range">
    ${RANGES.map(([id, name]) => html`<button type="button" aria-pressed=${id === range} onClick=${() => setQuery({ range: id })}>${name}</button>`)}
  </div>`;
}

export function Overview({ worker }) {
  const id = route.value.query.get("range") ?? "1h";
  const [range, , seconds, step] = RANGES.find(([each]) => each === id) ?? RANGES[1];
  const query = useQuery(
    async (signal) => {
      const since = Date.now() - seconds * 1_000 + step * 1_000;
      const [series, deployments] = await Promise.all([
        get(at`/api/workers/${worker.name}/series`, { since, step }, { signal }),
        get(at`/api/workers/${worker.name}/deployments`, { limit: 50 }, { signal }),
      ]);
      return { series, deployments: deployments.deployments };
    },
    [worker.name, range],
    { every: 5_000 },
  );
  return html`<div class="bar"><${RangeChoice} range=${range} /></div>
    <${Loaded} query=${query}>${(data) => html`<${Charts} ...${data} worker=${worker} />`}<//>
    <${Joined} worker=${worker} />`;
}

function Charts({ series, deployments, worker }) {
  const { times, points } = useMemo(() => filled(series), [series]);
  const marks = useMemo(() => deployments.map((each) => ({ at: Date.parse(each.created_at) / 1_000, label: `${each.number}` })), [deployments]);
  const lines = useMemo(() => linesOf(points, series.step, Math.max(10, Date.parse(series.until) / 1_000 - times.at(-1))), [points]);
  const whole = points.filter(Boolean);
  const sum = (field) => whole.reduce((total, point) => total + point[field], 0);
  const calls = sum("calls");
  const worst = (field) => whole.reduce((most, point) => Math.max(most ?? 0, point[field] ?? 0), null);
  const perSecond = (value) => (value === null ? "–" : `${count(Math.round(value * 100) / 100)}/s`);
  return html`<dl class="figures">
      <div><dt>Calls</dt><dd>${count(calls)}</dd></div>
      <div><dt>Errors</dt><dd class=${sum("errors") ? "bad-text" : ""}>${share(sum("errors"), calls)}</dd></div>
      <div><dt>Slowest p99</dt><dd>${ms(worst("p99_ms"))}</dd></div>
      <div><dt>CPU per call</dt><dd>${calls ? ms(sum("cpu_ms") / calls) : "–"}</dd></div>
      <div><dt>Files served</dt><dd>${count(sum("assets"))}</dd></div>
    </dl>
    ${!series.is_counted && html`<p class="notice">The node counts this worker together with others (setting <code>metrics_workers</code>), so it has no numbers of its own.</p>`}
    <div class="charts">
      <${Chart} title="Calls" times=${times} lines=${lines.calls} marks=${marks} format=${perSecond} />
      <${Chart} title="Errors" times=${times} lines=${lines.errors} marks=${marks} format=${perSecond} />
      <${Chart} title="Duration" times=${times} lines=${lines.wall} marks=${marks} format=${ms} />
      <${Chart} title="CPU time" times=${times} lines=${lines.cpu} marks=${marks} format=${ms} limit=${worker.limits.cpu_ms} note=${`Limit of a call: ${worker.limits.cpu_ms} ms`} />
    </div>
    ${marks.length > 0 && html`<p class="soft small"><i class="key accent dashed"></i>Dashed lines are deploys. The last one was <${Ago} at=${deployments[0].created_at} />.</p>`}`;
}

/** A place for every step: those without calls are 0 calls and no duration. */
function filled({ since, until, step, points }) {
  const by = new Map(points.map((point) => [Date.parse(point.at) / 1_000, point]));
  const begin = Date.parse(since) / 1_000;
  const end = Date.parse(until) / 1_000;
  const times = [];
  for (let time = begin; time < end; time += step) times.push(time);
  return { times, points: times.map((time) => by.get(time) ?? null) };
}

function linesOf(points, step, left) {
  const take = (field) => points.map((point) => point?.[field] ?? null);
  const rate = (of) => points.map((point, place) => (point ? of(point) / (place === points.length - 1 ? Math.min(step, left) : step) : 0));
  const kinds = [...new Set(points.flatMap((point) => Object.keys(point?.outcomes ?? {})))].filter((kind) => kind !== "ok");
  const told = kinds.map((kind, number) => ({
    label: NAMES[kind] ?? kind, colour: COLOURS[Math.min(number, 3)], fill: number === 0, values: rate((point) => point.outcomes[kind] ?? 0),
  }));
  return {
    calls: [{ label: "calls", colour: "accent", fill: true, values: rate((point) => point.calls) }],
    errors: told.length ? told : [{ label: "errors", colour: "bad", values: rate((point) => point.errors) }],
    wall: [{ label: "p99", colour: "accent", values: take("p99_ms") }, { label: "p50", colour: "violet", values: take("p50_ms"), dash: [4, 3] }],
    cpu: [{ label: "p99", colour: "accent", values: take("cpu_p99_ms") }, { label: "p50", colour: "violet", values: take("cpu_p50_ms"), dash: [4, 3] }],
  };
}

/** What the worker is given, by kind; another worker is a link. */
function Joined({ worker }) {
  const names = Object.keys(worker.env);
  return html`<section>
    <h2>What it is joined to</h2>
    ${worker.bindings.length + names.length + worker.secrets.length === 0 && html`<p class="soft">It has no bindings, variables or secrets.</p>`}
    <ul class="joined">
      ${worker.bindings.map((binding) => html`<li>
        <span class="soft">${binding.type}</span><code>env.${binding.name}</code>
        ${linkOf(binding, worker.name) ? html`<${Link} to=${linkOf(binding, worker.name)}><${Text} most=${60}>${targetOf(binding)}<//><//>` : html`<${Text} most=${60}>${targetOf(binding)}<//>`}
      </li>`)}
      ${names.map((name) => html`<li><span class="soft">variable</span><code>env.${name}</code><${Text} most=${60}>${typeof worker.env[name] === "string" ? worker.env[name] : JSON.stringify(worker.env[name])}<//></li>`)}
      ${worker.secrets.map((name) => html`<li><span class="soft">secret</span><code>env.${name}</code><span class="soft">not shown</span></li>`)}
    </ul>
  </section>`;
}

const linkOf = (binding, worker) => (binding.service ? workerPath(binding.service) : placeOf(binding, worker));

const targetOf = (binding) =>
  Object.entries(binding)
    .filter(([field, value]) => field !== "type" && field !== "name" && typeof value === "string")
    .map(([, value]) => value)
    .join(", ");
