// Settings of a worker: secrets (never shown again), routes, crons with their runs, limits; and its end.
import { useState } from "preact/hooks";
import { all, at, call, get } from "../core/api.js";
import { bytes, ms, time } from "../core/format.js";
import { html } from "../core/html.js";
import { useAction, useQuery } from "../core/query.js";
import { go, Link } from "../core/router.js";
import { may } from "../core/session.js";
import { Ago, Badge, Dialog, More, Text } from "../parts/pieces.js";
import { Failed, Loaded } from "../parts/states.js";

export function Settings({ worker, again }) {
  return html`<${Secrets} worker=${worker} again=${again} />
    <${Routes} worker=${worker} />
    <${Crons} worker=${worker} />
    <${Limits} worker=${worker} />
    <${Code} worker=${worker} />
    ${may("deploy") && html`<${End} worker=${worker} />`}`;
}

function Secrets({ worker, again }) {
  const path = at`/api/workers/${worker.name}/secrets`;
  const query = useQuery((signal) => all(path, "secrets", 1_000, { signal }), [worker.name]);
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [gone, setGone] = useState(null);
  const [told, setTold] = useState("");
  const put = useAction(async () => {
    const made = await call("PUT", path + at`/${name}`, { value });
    setTold(`${made.name} is set, with version ${made.version_number}. Its value is not shown again.`);
    setName("");
    setValue("");
    query.again();
    again();
  });
  const submit = (event) => {
    event.preventDefault();
    put.run();
  };
  return html`<section>
    <h2>Secrets</h2>
    <p class="soft">Values can be set and never read. Each change makes a version.</p>
    <${Loaded} query=${query}>${(secrets) => secrets.length > 0 && html`<div class="cards"><table>
      <thead><tr><th scope="col">Name</th><th scope="col">Set</th><th scope="col"><span class="hidden">Acts</span></th></tr></thead>
      <tbody>${secrets.map((secret) => html`<tr><th scope="row"><code><${Text}>${secret.name}<//></code></th><td data-label="Set"><${Ago} at=${secret.updated_at} /></td>
        <td class="right">${may("deploy") && html`<button type="button" class="quiet" onClick=${() => setName(secret.name)}>Set again</button>
          <button type="button" class="quiet bad-text" onClick=${() => setGone(secret.name)}>Delete</button>`}</td></tr>`)}</tbody>
    </table></div>`}<//>
    ${may("deploy") && html`<form class="bar" onSubmit=${submit}>
      <label>Name <input type="text" required maxlength="100" spellcheck="false" autocomplete="off" value=${name} onInput=${(event) => setName(event.target.value)} placeholder="API_KEY" /></label>
      <label class="grow">Value <input type="password" required autocomplete="new-password" value=${value} onInput=${(event) => setValue(event.target.value)} /></label>
      <button type="submit" class="primary" disabled=${put.busy}>${put.busy ? "Setting…" : "Set secret"}</button>
    </form>`}
    ${put.error && html`<${Failed} error=${put.error} />`}
    <p role="status" class="told">${told}</p>
    ${gone && html`<${Sure} title="Delete a secret" word=${gone} act=${() => call("DELETE", path + at`/${gone}`)} verb="Delete"
      onClose=${() => setGone(null)} onDone=${() => (setGone(null), setTold(`${gone} is deleted.`), query.again(), again())}>
      <p>The worker gets a version without <code><${Text}>${gone}<//></code>. A rollback brings it back.</p>
    <//>`}
  </section>`;
}

function Routes({ worker }) {
  return html`<section>
    <h2>Routes</h2>
    <ul class="plain">
      <li><a href=${worker.url} target="_blank" rel="noopener noreferrer">${worker.url}</a> <span class="soft">its own address</span></li>
      ${worker.routes.map((pattern) => html`<li><code><${Text}>${pattern}<//></code></li>`)}
    </ul>
    <p class="soft small">Routes are part of a deploy. <${Link} to="/routes">See who answers a URL<//>.</p>
  </section>`;
}

function Crons({ worker }) {
  const path = at`/api/workers/${worker.name}/crons`;
  const query = useQuery((signal) => get(path, { limit: 20 }, { signal }), [worker.name], { every: 10_000 });
  const run = useAction(async (cron) => {
    const { outcome, message } = await call("POST", `${path}/run`, { cron });
    query.again();
    return `${cron} ran: ${outcome}${message ? `, ${message}` : ""}`;
  });
  return html`<section>
    <h2>Crons</h2>
    <${Loaded} query=${query}>${({ crons, runs }) => crons.length === 0
      ? html`<p class="soft">It runs on no schedule. Put <code>crons</code> under <code>[triggers]</code> in its config and deploy.</p>`
      : html`<ul class="plain">${crons.map((each) => html`<li><code><${Text}>${each.cron}<//></code> <span class="soft">next <${Ago} at=${each.next_run} /></span>
            ${may("deploy") && html`<button type="button" class="quiet" disabled=${run.busy} onClick=${() => run.run(each.cron)}>Run now</button>`}</li>`)}</ul>
          ${run.error && html`<${Failed} error=${run.error} />`}
          <p role="status" class="told"><${Text}>${run.done ?? ""}<//></p>
          ${runs.length > 0 && html`<${More} rows=${runs} size=${10}>${(some) => html`<div class="cards"><table>
            <thead><tr><th scope="col">Run</th><th scope="col">Cron</th><th scope="col">Outcome</th><th scope="col" class="number">Took</th></tr></thead>
            <tbody>${some.map((each) => html`<tr><th scope="row"><time datetime=${each.started_at}>${time(each.started_at)}</time></th><td data-label="Cron"><code>${each.cron}</code></td>
              <td data-label="Outcome"><${Badge} kind=${each.outcome === "ok" ? "good" : each.outcome === "running" ? "" : "bad"}>${each.outcome}<//> <${Text}>${each.message}<//></td>
              <td data-label="Took" class="number">${each.ended_at ? ms(Date.parse(each.ended_at) - Date.parse(each.started_at)) : "–"}</td></tr>`)}</tbody>
          </table></div>`}<//>`}`}<//>
  </section>`;
}

function Limits({ worker }) {
  const { limits } = worker;
  return html`<section>
    <h2>Limits of a call</h2>
    <dl class="facts">
      <div><dt>CPU time</dt><dd>${ms(limits.cpu_ms)}</dd></div>
      <div><dt>Wall time</dt><dd>${ms(limits.wall_ms)}</dd></div>
      <div><dt>Memory</dt><dd>${bytes(limits.memory_mb * 1_048_576)}</dd></div>
      <div><dt>Requests to other servers</dt><dd>${limits.subrequests}</dd></div>
      <div><dt>Requests to bindings</dt><dd>${limits.internal_subrequests}</dd></div>
      <div><dt>Isolation</dt><dd>${worker.isolation}</dd></div>
      <div><dt>Compatibility date</dt><dd>${worker.compatibility_date || "–"}</dd></div>
    </dl>
  </section>`;
}

/** The modules of the version that has the traffic, the largest first. */
function Code({ worker }) {
  const path = at`/api/workers/${worker.name}/versions/${worker.version.id}`;
  const query = useQuery((signal) => get(path, {}, { signal }), [path]);
  return html`<section>
    <h2>Code</h2>
    <${Loaded} query=${query}>${({ modules, startup_time_ms: started }) => {
      const whole = modules.reduce((sum, each) => sum + each.bytes, 0);
      return html`<p class="soft">${bytes(whole)} in ${modules.length} ${modules.length === 1 ? "module" : "modules"}; it started in ${ms(started)}.</p>
        <${More} rows=${[...modules].sort((a, b) => b.bytes - a.bytes)} size=${20}>${(some) => html`<div class="cards"><table>
          <thead><tr><th scope="col">Module</th><th scope="col">Kind</th><th scope="col" class="number">Size</th><th scope="col">Source map</th></tr></thead>
          <tbody>${some.map((each) => html`<tr key=${each.path}><th scope="row"><code><${Text}>${each.path}<//></code></th><td data-label="Kind">${each.kind}</td><td data-label="Size" class="number">${bytes(each.bytes)}</td><td data-label="Source map">${each.has_source_map ? "yes" : "no"}</td></tr>`)}</tbody>
        </table></div>`}<//>`;
    }}<//>
  </section>`;
}

function End({ worker }) {
  const [open, setOpen] = useState(false);
  return html`<section>
    <h2>Delete</h2>
    <p class="soft">The worker stops to answer at once. Its versions, secrets and logs go with it; KV, queues and other data stay.</p>
    <button type="button" class="bad" onClick=${() => setOpen(true)}>Delete the worker</button>
    ${open && html`<${Sure} title="Delete the worker" word=${worker.name} verb="Delete" act=${() => call("DELETE", at`/api/workers/${worker.name}`)} onClose=${() => setOpen(false)} onDone=${() => go("/")}>
      <p>This cannot be undone.</p>
    <//>`}
  </section>`;
}

/** A window that asks for the name of what is about to be destroyed. */
export function Sure({ title, word, verb, act, onClose, onDone, children }) {
  const [typed, setTyped] = useState("");
  const doing = useAction(act);
  const submit = async (event) => {
    event.preventDefault();
    if (typed === word && (await doing.run()) !== null) onDone();
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    ${children}
    <form onSubmit=${submit}>
      <label>Type <code><${Text}>${word}<//></code> to go on <input type="text" autofocus autocomplete="off" spellcheck="false" value=${typed} onInput=${(event) => setTyped(event.target.value)} /></label>
      ${doing.error && html`<${Failed} error=${doing.error} />`}
      <p class="right"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="bad" disabled=${typed !== word || doing.busy}>${verb}</button></p>
    </form>
  <//>`;
}
