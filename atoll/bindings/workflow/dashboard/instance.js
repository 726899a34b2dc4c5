// One instance of a workflow: its steps over time, its parameters and result; pause, resume, restart, end, send an event.
import { useState } from "preact/hooks";
import { at, call, getExact } from "#dashboard/core/api.js";
import { isJson } from "#dashboard/core/bytes.js";
import { exactText } from "#dashboard/core/exact.js";
import { ms, time } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { useAction, useQuery } from "#dashboard/core/query.js";
import { go, Link } from "#dashboard/core/router.js";
import { may } from "#dashboard/core/session.js";
import { Ago, Badge, Dialog, More, Text } from "#dashboard/parts/pieces.js";
import { Empty, Failed, Loaded } from "#dashboard/parts/states.js";
import { Sure } from "#dashboard/views/settings.js";

const KINDS = { complete: "good", errored: "bad", terminated: "bad" };
const OVER = ["complete", "errored", "terminated"];

export const Status = ({ status }) => html`<${Badge} kind=${KINDS[status] ?? ""}>${status}<//>`;

export function OneInstance({ name, id }) {
  const path = at`/api/workflows/${name}/instances/${id}`;
  const query = useQuery((signal) => getExact(path, {}, { signal }), [path], { every: 2_000 });
  const [open, setOpen] = useState("");
  const act = useAction(async (verb, body) => {
    await call("POST", `${path}/${verb}`, body);
    query.again();
  });
  const close = () => setOpen("");
  const back = at`/data/workflows/${name}`;
  if (query.error?.status === 404) return html`<${Empty} title="There is no such instance" whole><p>It may be deleted, or was kept long enough. <${Link} to=${back}>All instances<//></p><//>`;
  return html`<p class="crumb"><${Link} to=${back}><${Text}>${name}<//><//></p>
    <div class="head"><h1 class="mono"><${Text}>${id}<//></h1>${query.data && html`<${Status} status=${query.data.status} />`}</div>
    <${Loaded} query=${query}>${(found) => html`
      ${may("deploy") && html`<p class="acts wide">
        ${found.status === "paused" || found.status === "waitingForPause"
          ? html`<button type="button" class="primary" disabled=${act.busy} onClick=${() => act.run("resume")}>Resume</button>`
          : !OVER.includes(found.status) && html`<button type="button" disabled=${act.busy} onClick=${() => act.run("pause")}>Pause</button>`}
        ${!OVER.includes(found.status) && html`<button type="button" onClick=${() => setOpen("event")}>Send an event</button>`}
        <button type="button" disabled=${act.busy} onClick=${() => act.run("restart")}>Restart</button>
        ${!OVER.includes(found.status) && html`<button type="button" class="bad" disabled=${act.busy} onClick=${() => act.run("terminate")}>Terminate</button>`}
        <button type="button" class="bad" onClick=${() => setOpen("delete")}>Delete</button>
      </p>`}
      ${act.error && html`<${Failed} error=${act.error} />`}
      ${found.error && html`<div class="notice bad" role="alert"><div><strong><${Text} most=${2_000}>${`${found.error.name}: ${found.error.message}`}<//></strong></div></div>`}
      <${Steps} found=${found} onFrom=${may("deploy") && OVER.includes(found.status) ? (from) => act.run("restart", { from }) : null} />
      <section><h2>Parameters</h2><pre class="value" tabindex="0"><${Text} most=${20_000}>${exactText(found.params ?? null, 2)}<//></pre></section>
      ${found.output !== null && found.output !== undefined && html`<section><h2>Output</h2><pre class="value" tabindex="0"><${Text} most=${20_000}>${exactText(found.output, 2)}<//></pre></section>`}
      <p class="soft small">Made ${time(found.queued)}, version <span class="mono">${found.versionId}</span></p>`}<//>
    ${open === "event" && html`<${SendEvent} path=${path} onClose=${close} onDone=${() => (close(), query.again())} />`}
    ${open === "delete" && html`<${Sure} title="Delete the instance" word=${id} verb="Delete" act=${() => call("DELETE", path)} onClose=${close} onDone=${() => go(back)}><p>It goes with all that its steps have stored.</p><//>`}`;
}

const isOver = (step) => (step.type === "step" ? step.success !== null : step.finished);
const stateOf = (step) => (!isOver(step) ? "open" : step.error ? "failed" : "done");

/** The steps as bars over the time of the instance. */
function Steps({ found, onFrom }) {
  const steps = found.steps.filter((each) => each.type !== "termination");
  if (!steps.length) return html`<section><h2>Steps</h2><p class="soft">No step has begun yet.</p></section>`;
  const now = OVER.includes(found.status) ? Math.max(...steps.map((each) => Date.parse(each.end ?? each.start))) : Date.now();
  const begin = Math.min(...steps.map((each) => Date.parse(each.start)));
  const whole = Math.max(now - begin, 1);
  return html`<section><h2>Steps</h2>
    <${More} rows=${steps} size=${200}>${(some) => html`<ol class="gantt">${some.map((step, number) => html`<${Step} key=${`${step.name} ${number}`} step=${step} begin=${begin} whole=${whole} now=${now} onFrom=${onFrom} />`)}</ol>`}<//>
    ${found.step_count > steps.length && html`<p class="soft">There are ${found.step_count} steps; not all of them are in the answer.</p>`}
  </section>`;
}

function Step({ step, begin, whole, now, onFrom }) {
  const state = stateOf(step);
  const start = Date.parse(step.start);
  const end = isOver(step) && step.end ? Date.parse(step.end) : now;
  const left = Math.min(Math.max(((start - begin) / whole) * 100, 0), 99);
  const width = Math.max(Math.min(((end - start) / whole) * 100, 100 - left), 0.5);
  const tries = step.attempts?.length ?? 0;
  const [, plain = step.name, number = "1"] = /^(.*)-(\d+)$/s.exec(step.name) ?? [];
  return html`<li><details>
    <summary><span class="name"><${Text} most=${80}>${step.name}<//></span>
      <span class="lane" aria-hidden="true"><i class=${`${state} ${step.type}`} style=${{ left: `${left}%`, width: `${width}%` }}></i></span>
      <span class="number soft">${state === "open" ? "…" : ms(end - start)}</span>
      <span><${Badge} kind=${{ failed: "bad", done: "good" }[state] ?? ""}>${state}<//>${tries > 1 ? html` <span class="soft small">${tries} tries</span>` : ""}</span></summary>
    <div class="inside">
      <dl class="facts">
        <div><dt>Kind</dt><dd>${step.type}</dd></div>
        <div><dt>Began</dt><dd>${time(step.start)} (<${Ago} at=${step.start} />)</dd></div>
        ${step.end && html`<div><dt>${isOver(step) ? "Ended" : "Due"}</dt><dd>${time(step.end)}</dd></div>`}
      </dl>
      ${step.error && html`<p class="bad-text"><${Text} most=${2_000}>${`${step.error.name}: ${step.error.message}`}<//></p>`}
      ${(step.attempts ?? []).filter((each) => each.error).map((each, at) => html`<p class="soft small">Try ${at + 1}: <${Text} most=${500}>${`${each.error.name}: ${each.error.message}`}<//></p>`)}
      ${step.output !== undefined && step.output !== null && html`<pre class="value" tabindex="0"><${Text} most=${20_000}>${exactText(step.output, 2)}<//></pre>`}
      ${onFrom && html`<button type="button" class="quiet" onClick=${() => onFrom({ name: plain, count: Number(number), type: step.type })}>Restart from this step</button>`}
    </div>
  </details></li>`;
}

function SendEvent({ path, onClose, onDone }) {
  const [type, setType] = useState("");
  const [payload, setPayload] = useState("{}");
  const send = useAction(() => call("POST", `${path}/events`, new Blob([`{"type":${JSON.stringify(type)},"payload":${payload}}`], { type: "application/json" })));
  const submit = async (event) => {
    event.preventDefault();
    if (isJson(payload) && (await send.run()) !== null) onDone();
  };
  return html`<${Dialog} title="Send an event" onClose=${onClose}>
    <form onSubmit=${submit}>
      <label>Type <input type="text" required maxlength="100" autofocus spellcheck="false" autocomplete="off" value=${type} onInput=${(event) => setType(event.target.value)} /></label>
      <label>Payload <textarea class="mono" rows="6" required spellcheck="false" value=${payload} onInput=${(event) => setPayload(event.target.value)}></textarea></label>
      <p class="bad-text" role="status">${isJson(payload) ? "" : "This is not JSON."}</p>
      ${send.error && html`<${Failed} error=${send.error} />`}
      <p class="right"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${send.busy || !isJson(payload)}>${send.busy ? "Sending…" : "Send"}</button></p>
    </form>
  <//>`;
}
