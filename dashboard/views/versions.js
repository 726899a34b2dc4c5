// The history of a worker: versions newest first, with their part of the traffic, what changed in each, and how they fail. Traffic
// moves with a slider or in one step, and goes back with one button.
import { useState } from "preact/hooks";
import { at, call, get } from "../core/api.js";
import { bytes, count, ms, share } from "../core/format.js";
import { html } from "../core/html.js";
import { useAction, useQuery } from "../core/query.js";
import { Link, workerPath } from "../core/router.js";
import { may } from "../core/session.js";
import { Ago, Badge, Dialog, Text } from "../parts/pieces.js";
import { Failed, Loaded } from "../parts/states.js";

const PAGE = 30;

export function Versions({ worker, again }) {
  const path = at`/api/workers/${worker.name}`;
  const [most, setMost] = useState(PAGE);
  const query = useQuery(
    async (signal) => {
      const [{ versions, cursor = "" }, series] = await Promise.all([
        get(`${path}/versions`, { limit: most }, { signal }),
        get(`${path}/series`, { by: "version", step: 60 }, { signal }),
      ]);
      return { versions, cursor, use: useOf(series.points) };
    },
    [worker.name, most],
    { every: 5_000 },
  );
  const [open, setOpen] = useState(null);
  const [done, setDone] = useState("");
  const changed = (text) => {
    setOpen(null);
    setDone(text);
    query.again();
    again();
  };
  return html`<p role="status" class="told">${done}</p>
    <${Loaded} query=${query}>${({ versions, cursor, use }) => {
      const active = versions.filter((each) => each.active);
      return html`<${Traffic} active=${active} worker=${worker} onSplit=${() => setOpen({ is: "split", version: active[0] })} onBack=${() => setOpen({ is: "back" })} hasOlder=${versions.length > 1} />
        <ol class="timeline">
          ${versions.map((version, place) => html`<${Version} key=${version.id} version=${version} before=${versions[place + 1]} use=${use.get(version.id)} worker=${worker} onDeploy=${() => setOpen({ is: "split", version })} />`)}
        </ol>
        ${cursor && html`<p class="more"><button type="button" onClick=${() => setMost(most + 100)}>Older versions</button></p>`}
        ${open?.is === "split" && html`<${Split} worker=${worker} version=${open.version} versions=${versions} onClose=${() => setOpen(null)} onDone=${changed} />`}
        ${open?.is === "back" && html`<${Back} worker=${worker} versions=${versions} onClose=${() => setOpen(null)} onDone=${changed} />`}`;
    }}<//>`;
}

/** Calls and errors of each version in the last hour. */
function useOf(points) {
  const use = new Map();
  for (const point of points) {
    const sum = use.get(point.version) ?? { calls: 0, errors: 0 };
    use.set(point.version, { calls: sum.calls + point.calls, errors: sum.errors + point.errors });
  }
  return use;
}

function Traffic({ active, onSplit, onBack, hasOlder }) {
  return html`<section class="traffic">
    <h2>Traffic</h2>
    <div class="split" role="img" aria-label=${active.map((each) => `version ${each.number}: ${each.percentage} %`).join(", ")}>
      ${active.map((each, place) => html`<span class=${`part p${place}`} style=${{ flexGrow: each.percentage, flexBasis: 0 }}>${each.number}: ${each.percentage} %</span>`)}
    </div>
    ${may("deploy") && hasOlder && html`<p class="acts"><button type="button" onClick=${onSplit}>Change the split</button><button type="button" onClick=${onBack}>Roll back</button></p>`}
  </section>`;
}

function Version({ version, before, use, worker, onDeploy }) {
  const [isOpen, setOpen] = useState(false);
  return html`<li class=${version.active ? "is-active" : ""}>
    <div class="version">
      <h3>Version ${version.number} ${version.active && html`<${Badge} kind="good">${version.percentage} %<//>`} ${version.tag && html`<${Badge}><${Text} most=${40}>${version.tag}<//><//>`}</h3>
      <p class="message"><${Text}>${version.message || "No message"}<//></p>
      <p class="soft small"><${Ago} at=${version.created_at} /> by <${Text} most=${60}>${version.author}<//>. Starts in ${ms(version.startup_time_ms)}.
        ${use ? html` Last hour: ${count(use.calls)} calls, <span class=${use.errors ? "bad-text" : ""}>${share(use.errors, use.calls)} errors</span>.` : ""}</p>
      <p class="acts">
        ${version.preview_url && html`<a href=${version.preview_url} target="_blank" rel="noopener noreferrer">Preview</a>`}
        <${Link} to=${`${workerPath(worker.name, "logs")}?version=${encodeURIComponent(version.id)}`}>Logs<//>
        ${before && html`<button type="button" class="quiet" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>Changes since ${before.number}</button>`}
        ${may("deploy") && !(version.active && version.percentage === 100) && html`<button type="button" class="quiet" onClick=${onDeploy}>Give it traffic</button>`}
      </p>
      ${isOpen && html`<${Changes} worker=${worker} version=${version} before=${before} />`}
    </div>
  </li>`;
}

const PARTS = ["env", "bindings", "routes", "crons", "limits", "isolation", "compatibility_date", "compatibility_flags", "secrets", "handlers"];

function Changes({ worker, version, before }) {
  const one = (number) => (signal) => get(at`/api/workers/${worker.name}/versions/${number}`, {}, { signal });
  const query = useQuery((signal) => Promise.all([one(before.number)(signal), one(version.number)(signal)]), [version.id, before.id]);
  return html`<${Loaded} query=${query}>${([old, now]) => {
    const rows = [...codeRows(old, now), ...PARTS.flatMap((part) => rowsOf(part, old[part], now[part]))];
    if (!rows.length) return html`<p class="soft">Nothing but the upload itself: the same code and settings.</p>`;
    return html`<div class="table-box" tabindex="0" role="region" aria-label="Changes"><table class="diff">
      <thead><tr><th scope="col">What</th><th scope="col">Version ${before.number}</th><th scope="col">Version ${version.number}</th></tr></thead>
      <tbody>${rows.map(([name, from, to]) => html`<tr><th scope="row"><${Text} most=${80}>${name}<//></th>
        <td>${from === undefined ? html`<span class="soft">not there</span>` : html`<del><${Text} most=${400}>${from}<//></del>`}</td>
        <td>${to === undefined ? html`<span class="soft">removed</span>` : html`<ins><${Text} most=${400}>${to}<//></ins>`}</td></tr>`)}
      </tbody></table></div>`;
  }}<//>`;
}

const said = (value) => (value === undefined ? undefined : typeof value === "string" ? value : JSON.stringify(value));

function codeRows(old, now) {
  const by = (modules) => new Map(modules.map((each) => [each.path, each]));
  const [a, b] = [by(old.modules), by(now.modules)];
  return [...new Set([...a.keys(), ...b.keys()])]
    .filter((path) => a.get(path)?.sha256 !== b.get(path)?.sha256)
    .map((path) => [path, a.get(path) && `${bytes(a.get(path).bytes)}, ${a.get(path).sha256.slice(0, 8)}`, b.get(path) && `${bytes(b.get(path).bytes)}, ${b.get(path).sha256.slice(0, 8)}`]);
}

/** A row for each entry that differs: of an object by key, of a list by name or value. */
function rowsOf(part, old, now) {
  const entries = (value) => {
    if (Array.isArray(value)) return new Map(value.map((each) => [each?.name ?? said(each), said(each)]));
    return value && typeof value === "object" ? new Map(Object.entries(value).map(([key, each]) => [key, said(each)])) : new Map(value === undefined ? [] : [["", said(value)]]);
  };
  const [a, b] = [entries(old), entries(now)];
  return [...new Set([...a.keys(), ...b.keys()])].filter((key) => a.get(key) !== b.get(key)).map((key) => [[part, key].filter(Boolean).join(" "), a.get(key), b.get(key)]);
}

function Split({ worker, version, versions, onClose, onDone }) {
  const others = versions.filter((each) => each.id !== version.id);
  const rival = others.find((each) => each.active) ?? others[0];
  const [other, setOther] = useState(rival?.id);
  const [part, setPart] = useState(version.active ? version.percentage : 10);
  const [message, setMessage] = useState("");
  const against = others.find((each) => each.id === other);
  const deploy = useAction(async (percentage) => {
    const shares = [{ version: version.id, percentage }, ...(percentage < 100 && against ? [{ version: against.id, percentage: 100 - percentage }] : [])];
    await call("POST", at`/api/workers/${worker.name}/deployments`, { versions: shares, message });
    onDone(percentage === 100 ? `Version ${version.number} has all traffic.` : `Version ${version.number} has ${percentage} % of the traffic.`);
  });
  return html`<${Dialog} title=${`Traffic of version ${version.number}`} onClose=${onClose}>
    <form onSubmit=${(event) => (event.preventDefault(), deploy.run(against ? part : 100))}>
      ${against && html`<label class="slider">Part of the traffic: <output>${part} %</output>
        <input type="range" min="0" max="100" step="1" value=${part} onInput=${(event) => setPart(Number(event.target.value))} aria-valuetext=${`${part} %`} />
      </label>
      <label>The rest (${100 - part} %) goes to
        <select value=${other} onChange=${(event) => setOther(event.target.value)}>${others.map((each) => html`<option value=${each.id}>version ${each.number}${each.message ? `: ${each.message.slice(0, 40)}` : ""}</option>`)}</select>
      </label>`}
      <label>Message <input type="text" maxlength="500" value=${message} onInput=${(event) => setMessage(event.target.value)} placeholder="Why" /></label>
      ${deploy.error && html`<${Failed} error=${deploy.error} />`}
      <p class="right">
        <button type="button" onClick=${onClose}>Cancel</button>
        ${against && part !== 100 && html`<button type="button" disabled=${deploy.busy} onClick=${() => deploy.run(100)}>All to ${version.number}</button>`}
        <button type="submit" class="primary" disabled=${deploy.busy}>${deploy.busy ? "Deploying…" : "Deploy"}</button>
      </p>
    </form>
  <//>`;
}

function Back({ worker, versions, onClose, onDone }) {
  const newest = versions.find((each) => each.active);
  const older = versions.filter((each) => each.number < (newest?.number ?? Infinity));
  const [to, setTo] = useState(older[0]?.id ?? "");
  const [force, setForce] = useState(false);
  const [message, setMessage] = useState("");
  const back = useAction(async () => {
    await call("POST", at`/api/workers/${worker.name}/rollback`, { version: to, message, force });
    onDone(`Version ${versions.find((each) => each.id === to)?.number} has all traffic again. To undo, give version ${newest.number} its traffic back.`);
  });
  return html`<${Dialog} title="Roll back" onClose=${onClose}>
    ${older.length === 0
      ? html`<p>There is no older version than the active one.</p><p class="right"><button type="button" onClick=${onClose}>Close</button></p>`
      : html`<form onSubmit=${(event) => (event.preventDefault(), back.run())}>
          <label>To <select value=${to} onChange=${(event) => setTo(event.target.value)}>${older.map((each) => html`<option value=${each.id}>version ${each.number}${each.message ? `: ${each.message.slice(0, 40)}` : ""}</option>`)}</select></label>
          <label>Message <input type="text" maxlength="500" value=${message} onInput=${(event) => setMessage(event.target.value)} placeholder="Why" /></label>
          ${back.error && html`<${Failed} error=${back.error} />`}
          ${(back.error?.code === 10220 || force) && html`<label class="check"><input type="checkbox" checked=${force} onChange=${(event) => setForce(event.target.checked)} />Roll back although secrets have changed</label>`}
          <p class="right"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${back.busy}>${back.busy ? "Rolling back…" : "Roll back"}</button></p>
        </form>`}
  <//>`;
}
