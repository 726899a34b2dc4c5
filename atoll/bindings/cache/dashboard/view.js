// The pages of the cache: the caches of the tenant, and what one of them keeps. Purging is by URL, by tag, or all of it.
import { useState } from "preact/hooks";
import { at, call, get } from "#dashboard/core/api.js";
import { bytes, count } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { useAction, useQuery } from "#dashboard/core/query.js";
import { may } from "#dashboard/core/session.js";
import { Ago, Dialog, Text } from "#dashboard/parts/pieces.js";
import { Empty, Failed, Loaded } from "#dashboard/parts/states.js";
import { cursorNow, PageTurn, Resources, Rows } from "#dashboard/parts/things.js";

const PAGE = 100;
const COLUMNS = [
  { name: "Responses", number: true, of: ({ responses }) => count(responses) },
  { name: "Size", number: true, of: (each) => bytes(each.bytes) },
];
const HOW = html`<p>Workers fill them with <code>caches.default.put()</code>. See how:</p><pre tabindex="0"><code>atoll deploy examples/cache-api</code></pre>`;

export function View({ rest }) {
  if (!rest.length) {
    return html`<${Resources} at="cache" path="/api/caches" field="caches" noun="cache" columns=${COLUMNS} canMake=${false} about=${HOW} first="No cache keeps anything" />`;
  }
  return html`<${Cache} name=${rest.join("/")} />`;
}

function Cache({ name }) {
  const path = at`/api/caches/${name}`;
  const after = cursorNow();
  const query = useQuery((signal) => get(path, { limit: PAGE, cursor: after }, { signal }), [path, after]);
  const [told, setTold] = useState("");
  const [isAsking, setAsking] = useState(false);
  const [url, setUrl] = useState("");
  const [tag, setTag] = useState("");
  const purge = useAction(async (what, words) => {
    setTold("");
    const text = new URLSearchParams(what).toString();
    await call("DELETE", text ? `${path}?${text}` : path);
    setTold(words);
    setAsking(false);
    query.again();
  });
  const submit = (event) => {
    event.preventDefault();
    purge.run(tag ? { tag } : { url }, tag ? `What has the tag ${tag} is purged.` : `${url} is purged.`);
  };
  const columns = [
    { name: "URL", of: (each) => html`<span class="mono"><${Text}>${each.url}<//></span>` },
    { name: "Status", number: true, of: ({ status }) => status },
    { name: "Size", number: true, of: (each) => bytes(each.bytes) },
    { name: "Stored", of: ({ stored_at }) => html`<${Ago} at=${stored_at} />` },
    { name: "Expires", of: ({ expires_at }) => html`<${Ago} at=${expires_at} />` },
    ...(may("deploy") ? [{ name: "Purge", of: (each) => html`<button type="button" class="quiet bad-text" disabled=${purge.busy} onClick=${() => purge.run({ url: each.url }, `${each.url} is purged.`)}>Purge<span class="hidden"> <${Text}>${each.url}<//></span></button>` }] : []),
  ];
  return html`<div class="head"><h1><${Text}>${name}<//></h1></div>
    ${may("deploy") && html`<form class="bar" onSubmit=${submit}>
      <label class="grow">URL <input type="text" class="mono" required=${!tag} disabled=${Boolean(tag)} spellcheck="false" autocomplete="off" placeholder="https://shop.example/tea" value=${url} onInput=${(event) => setUrl(event.target.value)} /></label>
      <label>or a Cache-Tag <input type="text" spellcheck="false" autocomplete="off" value=${tag} onInput=${(event) => setTag(event.target.value)} /></label>
      <button type="submit" disabled=${purge.busy}>Purge</button>
      <button type="button" class="bad" onClick=${() => setAsking(true)}>Purge all</button>
    </form>`}
    ${purge.error && html`<${Failed} error=${purge.error} />`}
    <p role="status" class="told"><${Text}>${told}<//></p>
    ${query.error?.status === 404
      ? html`<${Empty} title="The cache is empty"><p>It appears again when a worker stores a response in it.</p><//>`
      : html`<${Loaded} query=${query}>${({ responses, cursor }) => html`<${Rows} rows=${responses} columns=${columns} caption="Responses" /><${PageTurn} cursor=${cursor} />`}<//>`}
    ${isAsking && html`<${Dialog} title="Purge all" onClose=${() => setAsking(false)}>
      <p>Everything in <code><${Text}>${name}<//></code> is dropped. Workers make it anew as it is asked for.</p>
      <p class="right"><button type="button" onClick=${() => setAsking(false)}>Cancel</button><button type="button" class="bad" disabled=${purge.busy} onClick=${() => purge.run({}, "The cache is empty.")}>Purge all</button></p>
    <//>`}`;
}
