// The keys of a namespace, a page at a time, by prefix; the form for a new one, and the end of the namespace.
import { useState } from "preact/hooks";
import { at, call, get, getExact } from "#dashboard/core/api.js";
import { exactText } from "#dashboard/core/exact.js";
import { bytes, count } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { useQuery } from "#dashboard/core/query.js";
import { go, Link, route, setQuery } from "#dashboard/core/router.js";
import { may } from "#dashboard/core/session.js";
import { Download } from "#dashboard/parts/bytes.js";
import { Ago, Text } from "#dashboard/parts/pieces.js";
import { Empty, Failed, Loaded } from "#dashboard/parts/states.js";
import { cursorNow, PageTurn, Rows } from "#dashboard/parts/things.js";
import { Sure } from "#dashboard/views/settings.js";
import { Entry } from "./form.js";

const PAGE = 100;
export const valuePlace = (namespace, key) => `/data/kv/${encodeURIComponent(namespace)}?key=${encodeURIComponent(key)}`;

const COLUMNS = (namespace) => [
  { name: "Key", of: ({ name }) => html`<${Link} class="mono" to=${valuePlace(namespace, name)}><${Text}>${name}<//><//>` },
  { name: "Expires", of: ({ expiration }) => (expiration ? html`<${Ago} at=${new Date(expiration * 1_000).toISOString()} />` : "never") },
  { name: "Metadata", of: ({ metadata }) => (metadata === undefined ? "–" : html`<code><${Text} most=${80}>${exactText(metadata)}<//></code>`) },
];

export function Keys({ namespace }) {
  const path = at`/api/kv/${namespace}`;
  const prefix = route.value.query.get("prefix") ?? "";
  const after = cursorNow();
  const size = useQuery((signal) => get(path, {}, { signal }), [namespace]);
  const query = useQuery((signal) => getExact(`${path}/keys`, { prefix, cursor: after, limit: PAGE }, { signal }), [namespace, prefix, after]);
  const [open, setOpen] = useState("");
  const add = may("deploy") && html`<button type="button" class="primary" onClick=${() => setOpen("new")}>New key</button>`;
  return html`<div class="head"><h1><${Text}>${namespace}<//></h1>
      ${size.data && html`<p class="soft">${count(size.data.keys)} keys, ${bytes(size.data.bytes)}</p>`}</div>
    <form class="bar" role="search" onSubmit=${(event) => event.preventDefault()}>
      <input type="search" aria-label="Keys that begin with" placeholder="Keys that begin with" spellcheck="false" value=${prefix} onInput=${(event) => setQuery({ prefix: event.target.value, after: "" })} />
      ${add}
      <${Download} path=${`${path}/export`} name=${`${namespace}.ndjson`} />
    </form>
    <${Loaded} query=${query}>${({ keys, cursor }) => html`
      ${keys.length === 0 && (prefix || after
        ? html`<${Empty} title="No key begins with this"><p><button type="button" onClick=${() => setQuery({ prefix: "", after: "" })}>Show all keys</button></p><//>`
        : html`<${Empty} title="No keys yet"><p>Workers write them with <code>env.NAME.put()</code>. From a terminal:</p><pre tabindex="0"><code>atoll kv put ${namespace} greeting hello --api ${location.origin}</code></pre><//>`)}
      ${keys.length > 0 && html`<${Rows} rows=${keys} columns=${COLUMNS(namespace)} caption="Keys" />`}
      <${PageTurn} cursor=${cursor} />`}<//>
    ${may("deploy") && size.data && html`<section><h2>Delete</h2>
      <p class="soft">The namespace goes with all its entries. A worker that is bound to it finds it empty.</p>
      <button type="button" class="bad" onClick=${() => setOpen("drop")}>Delete the namespace</button></section>`}
    ${size.error && html`<${Failed} error=${size.error} again=${size.again} />`}
    ${open === "new" && html`<${Entry} namespace=${namespace} onClose=${() => setOpen("")} onDone=${(key) => go(valuePlace(namespace, key))} />`}
    ${open === "drop" && html`<${Sure} title="Delete the namespace" word=${namespace} verb="Delete" act=${() => call("DELETE", path)} onClose=${() => setOpen("")} onDone=${() => go("/data/kv")}>
      <p>All its entries are deleted. This cannot be undone.</p><//>`}`;
}
