// Tenants: what they use of their quotas, as bars; and one tenant, with its quotas, hosts, suspension and end.
import { useState } from "preact/hooks";
import { all, at, call, get } from "../core/api.js";
import { bytes, count } from "../core/format.js";
import { html } from "../core/html.js";
import { useAction, useQuery } from "../core/query.js";
import { go, Link, route, setQuery } from "../core/router.js";
import { chooseTenant, known, may } from "../core/session.js";
import { Ago, Badge, Dialog, More, Text } from "../parts/pieces.js";
import { Empty, Failed, Loaded } from "../parts/states.js";
import { Sure } from "../views/settings.js";
import { Bar, percent } from "./node.js";

const MOST = 5_000;
const SWITCHES = ["own_engine", "suspended"];

const shownAs = (name, value) => (/bytes$/.test(name) ? bytes(value) : /_mb$/.test(name) ? bytes(value * 1_048_576) : count(value));
export const words = (name) => name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase()).replace(/\b(cpu|kv|r2|d1|ai|mb|ms)\b/gi, (short) => (short === "ms" || short === "Ms" ? "ms" : short.toUpperCase()));
const pathOf = (name) => `/manage/tenants/${encodeURIComponent(name)}`;

/** Quotas that count something, the fullest first. */
function fullest({ usage, quotas }) {
  const parts = Object.keys(usage).map((name) => ({ name, used: usage[name], most: quotas[name] ?? null }));
  return parts.sort((a, b) => share(b) - share(a) || b.used - a.used);
}
const share = ({ used, most }) => (most === null ? -1 : most ? used / most : 1);

export function Tenants() {
  const query = useQuery((signal) => all("/api/tenants", "tenants", MOST, { signal }), [], { every: 15_000 });
  const now = useQuery((signal) => get("/api/node/engines", {}, { signal }), [], { every: 3_000 });
  const loads = new Map(now.data?.tenants.map((each) => [each.name, each]));
  const typed = route.value.query.get("q") ?? "";
  return html`<${Loaded} query=${query}>${(tenants) => {
    const rows = tenants.filter(({ name }) => name.includes(typed.toLowerCase())).sort((a, b) => share(fullest(b)[0]) - share(fullest(a)[0]) || a.name.localeCompare(b.name));
    return html`
      <div class="bar"><input type="search" aria-label="Filter by name" placeholder="Filter by name" value=${typed} onInput=${(event) => setQuery({ q: event.target.value })} /></div>
      ${rows.length === 0 && html`<${Empty} title="No tenant has this in its name"><p><button type="button" onClick=${() => setQuery({ q: "" })}>Show all</button></p><//>`}
      <${More} rows=${rows} size=${50}>${(some) => some.length > 0 && html`<div class="cards"><table>
        <thead><tr><th scope="col">Tenant</th><th scope="col" class="number">Workers</th><th scope="col">Fullest quota</th><th scope="col" class="number">CPU now</th><th scope="col">Since</th></tr></thead>
        <tbody>${some.map((each) => html`<${Row} key=${each.name} tenant=${each} load=${loads.get(each.name)} />`)}</tbody>
      </table></div>`}<//>
      ${tenants.length >= MOST && html`<p class="soft">Only the first ${count(MOST)} are here.</p>`}
      ${may("admin") && html`<${Make} />`}`;
  }}<//>`;
}

function Row({ tenant, load }) {
  const [first] = fullest(tenant);
  return html`<tr>
    <th scope="row"><${Link} to=${pathOf(tenant.name)}><${Text}>${tenant.name}<//><//> ${tenant.quotas.suspended && html`<${Badge} kind="bad">suspended<//>`}</th>
    <td data-label="Workers" class="number">${count(tenant.usage.workers)}${tenant.quotas.workers !== null && html`<span class="soft"> of ${count(tenant.quotas.workers)}</span>`}</td>
    <td data-label="Fullest quota">${first.most === null ? html`<span class="soft">no quota is set</span>` : html`<span class="used-of"><${Bar} part=${share(first)} /><span class="small">${words(first.name)}: ${shownAs(first.name, first.used)} of ${shownAs(first.name, first.most)}</span></span>`}</td>
    <td data-label="CPU now" class="number">${percent(load?.cpu_percent ?? (load ? null : 0))}</td>
    <td data-label="Since">${Date.parse(tenant.created_at) ? html`<${Ago} at=${tenant.created_at} />` : html`<span class="soft">always</span>`}</td>
  </tr>`;
}

function Make() {
  const [name, setName] = useState("");
  const make = useAction(() => call("POST", "/api/tenants", { name }));
  const submit = async (event) => {
    event.preventDefault();
    if ((await make.run()) !== null) go(pathOf(name));
  };
  return html`<form class="bar" onSubmit=${submit}>
      <label>Name of a new tenant <input type="text" required maxlength="63" spellcheck="false" autocomplete="off" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
      <button type="submit" disabled=${make.busy}>Create tenant</button>
    </form>
    ${make.error && html`<${Failed} error=${make.error} />`}`;
}

/** One tenant. With `whole` it is a page of its own. */
export function OneTenant({ name, whole = false }) {
  const query = useQuery((signal) => get(at`/api/tenants/${name}`, {}, { signal }), [name], { every: 15_000 });
  if (query.error?.status === 404) return html`<${Empty} title="There is no such tenant" whole=${whole}><p>It may be deleted. <${Link} to="/manage">Back<//></p><//>`;
  const canChange = known.value.is_operator && may("admin");
  return html`<div class="head">${whole ? html`<h1><${Text}>${name}<//></h1>` : html`<h2><${Text}>${name}<//></h2>`}${query.data?.quotas.suspended && html`<${Badge} kind="bad">suspended<//>`}</div>
    <${Loaded} query=${query}>${(tenant) => html`
      ${canChange && html`<${Acts} tenant=${tenant} again=${query.again} />`}
      ${whole && html`<${Load} name=${name} />`}
      <section><h2>Usage</h2><div class="meters wide">${fullest(tenant).map((each) => html`<div class="used" key=${each.name}>
        <span>${words(each.name)}</span>${each.most === null ? html`<span></span>` : html`<${Bar} part=${share(each)} />`}
        <span class="number">${shownAs(each.name, each.used)}${each.most === null ? "" : html`<span class="soft"> of ${shownAs(each.name, each.most)}</span>`}</span>
      </div>`)}</div></section>
      <${Quotas} key=${JSON.stringify(tenant.quotas)} tenant=${tenant} canChange=${canChange} again=${query.again} />
      <section><h2>Hosts and destinations</h2>
        <dl class="facts">
          <div><dt>Hosts that routes may use</dt><dd>${tenant.hosts === null ? "any that is free" : tenant.hosts.length ? html`<code><${Text}>${tenant.hosts.join(", ")}<//></code>` : "none"}</dd></div>
          <div><dt>Connections are allowed to</dt><dd><${Text}>${tenant.egress.allow.join(", ") || "what the node allows"}<//></dd></div>
          <div><dt>Connections are refused to</dt><dd><${Text}>${tenant.egress.deny.join(", ") || "what the node refuses"}<//></dd></div>
        </dl>
      </section>`}<//>`;
}

/** What a tenant does now, as the node sees it. */
function Load({ name }) {
  const query = useQuery((signal) => get("/api/node/engines", {}, { signal }), [], { every: 2_000 });
  if (!query.data) return null;
  const load = query.data.tenants.find((each) => each.name === name);
  const isolates = query.data.engines.flatMap((engine) => engine.isolates).filter((each) => each.tenant === name);
  isolates.sort((a, b) => (b.cpu_percent ?? 0) - (a.cpu_percent ?? 0));
  return html`<section><h2>Now</h2>
    <dl class="figures">
      <div><dt>CPU</dt><dd>${percent(load?.cpu_percent ?? (load ? null : 0))}</dd></div>
      <div><dt>Memory</dt><dd>${bytes(load?.memory_bytes ?? 0)}</dd></div>
      <div><dt>In flight</dt><dd>${count(load?.in_flight ?? 0)}</dd></div>
      <div><dt>Isolates</dt><dd>${count(load?.loaded ?? 0)}</dd></div>
    </dl>
    ${isolates.length > 0 && html`<${More} rows=${isolates} size=${5}>${(some) => html`<ul class="plain">${some.map((each) => html`<li key=${each.id}><code><${Text}>${each.worker}<//></code> <span class="soft">${percent(each.cpu_percent)} CPU, ${bytes(each.memory_bytes)}, ${count(each.in_flight)} in flight</span> ${each.marks.map((mark) => html`<${Badge} kind="bad">${mark}<//>`)}</li>`)}</ul>`}<//>`}
  </section>`;
}

function Acts({ tenant, again }) {
  const [open, setOpen] = useState("");
  const { name } = tenant;
  const isSuspended = Boolean(tenant.quotas.suspended);
  const suspend = () => call("PATCH", at`/api/tenants/${name}`, { quotas: { suspended: isSuspended ? null : true } });
  const resume = useAction(suspend);
  const visit = () => {
    chooseTenant(name);
    go("/");
  };
  const close = () => setOpen("");
  return html`<p class="acts wide">
      <button type="button" onClick=${visit}>Its workers</button>
      ${isSuspended
        ? html`<button type="button" class="primary" disabled=${resume.busy} onClick=${async () => (await resume.run()) !== null && again()}>Serve it again</button>`
        : html`<button type="button" class="bad" onClick=${() => setOpen("suspend")}>Suspend</button>`}
      <button type="button" class="bad" onClick=${() => setOpen("delete")}>Delete</button>
    </p>
    ${resume.error && html`<${Failed} error=${resume.error} />`}
    ${open === "suspend" && html`<${Sure} title="Suspend the tenant" word=${name} verb="Suspend" act=${suspend} onClose=${close} onDone=${() => (close(), again())}><p>Every call of its workers is refused with 429 from now on, crons, queues and files included. Calls under way may finish. Nothing is deleted.</p><//>`}
    ${open === "delete" && html`<${Sure} title="Delete the tenant" word=${name} verb="Delete" act=${() => call("DELETE", at`/api/tenants/${name}`)} onClose=${close} onDone=${() => go("/manage/tenants")}><p>Its tokens go with it. A tenant with workers or data cannot be deleted.</p><//>`}`;
}

function Quotas({ tenant, canChange, again }) {
  const [open, setOpen] = useState(false);
  const set = Object.entries(tenant.quotas).filter(([name, value]) => value !== null && name !== "suspended");
  return html`<section><div class="head"><h2>Quotas</h2>${canChange && html`<button type="button" class="quiet" onClick=${() => setOpen(true)}>Change</button>`}</div>
    ${set.length === 0 ? html`<p class="soft">None is set: only the node's own limits apply.</p>` : html`<dl class="facts">${set.map(([name, value]) => html`<div key=${name}><dt>${words(name)}</dt><dd>${value === true ? "yes" : value === false ? "no" : shownAs(name, value)}</dd></div>`)}</dl>`}
    ${open && html`<${Change} tenant=${tenant} onClose=${() => setOpen(false)} onDone=${() => (setOpen(false), again())} />`}
  </section>`;
}

/** Only what was changed is sent: an operator elsewhere may have changed the rest. */
function Change({ tenant, onClose, onDone }) {
  const [typed, setTyped] = useState({});
  const names = Object.keys(tenant.quotas).filter((name) => !SWITCHES.includes(name));
  const save = useAction(() => {
    const quotas = Object.fromEntries(Object.entries(typed).map(([name, text]) => [name, text === "" ? null : name === "own_engine" ? text : Number(text)]));
    return call("PATCH", at`/api/tenants/${tenant.name}`, { quotas });
  });
  const submit = async (event) => {
    event.preventDefault();
    if ((await save.run()) !== null) onDone();
  };
  const put = (name, value) => setTyped({ ...typed, [name]: value });
  return html`<${Dialog} title=${`Quotas of ${tenant.name}`} onClose=${onClose}>
    <form onSubmit=${submit}>
      <p class="soft">An empty field is no quota.</p>
      <div class="pair">${names.map((name) => html`<label key=${name}>${words(name)} <input type="text" inputmode="decimal" pattern="[0-9.]*" autocomplete="off" name=${name} value=${typed[name] ?? tenant.quotas[name] ?? ""} onInput=${(event) => put(name, event.target.value)} /></label>`)}</div>
      <label class="check"><input type="checkbox" checked=${typed.own_engine ?? Boolean(tenant.quotas.own_engine)} onChange=${(event) => put("own_engine", event.target.checked)} /> An engine process of its own</label>
      ${save.error && html`<${Failed} error=${save.error} />`}
      <p class="right"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${save.busy || !Object.keys(typed).length}>${save.busy ? "Saving…" : "Save"}</button></p>
    </form>
  <//>`;
}
