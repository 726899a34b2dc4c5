// A bucket as folders: a page of what is below a prefix. Files can be dropped into it; the bucket ends here too.
import { useRef, useState } from "preact/hooks";
import { call, get } from "#dashboard/core/api.js";
import { bytes, count } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { useAction, useQuery } from "#dashboard/core/query.js";
import { go, Link, route, setQuery } from "#dashboard/core/router.js";
import { may } from "#dashboard/core/session.js";
import { Ago, Text } from "#dashboard/parts/pieces.js";
import { Empty, Failed, Loaded } from "#dashboard/parts/states.js";
import { cursorNow, PageTurn, Rows } from "#dashboard/parts/things.js";
import { Sure } from "#dashboard/views/settings.js";
import { foldersOf, pageOf, pathOf } from "./places.js";

const PAGE = 100;

export function Folder({ bucket }) {
  const path = pathOf(bucket);
  const prefix = route.value.query.get("prefix") ?? "";
  const after = cursorNow();
  const size = useQuery((signal) => get(path, {}, { signal }), [bucket]);
  const query = useQuery((signal) => get(`${path}/objects`, { prefix, delimiter: "/", cursor: after, limit: PAGE }, { signal }), [bucket, prefix, after]);
  const [isDropping, setDropping] = useState(false);
  const folder = prefix.slice(0, prefix.lastIndexOf("/") + 1);
  const again = () => (query.again(), size.again());
  const columns = [
    { name: "Name", of: ({ key, isFolder }) => html`<${Link} class="mono" to=${pageOf(bucket, isFolder ? { prefix: key } : { key })}>${isFolder ? "▸ " : ""}<${Text}>${key.slice(folder.length) || key}<//><//>` },
    { name: "Size", number: true, of: (each) => (each.isFolder ? "folder" : bytes(each.size)) },
    { name: "Type", of: ({ http }) => (http?.contentType ? html`<${Text} most=${60}>${http.contentType}<//>` : "–") },
    { name: "Stored", of: ({ uploaded_at }) => html`<${Ago} at=${uploaded_at} />` },
  ];
  if (size.error?.status === 404) {
    return html`<${Empty} title="There is no such bucket" whole><p>It may be deleted, or belong to another tenant. <${Link} to="/data/r2">All buckets<//></p><//>`;
  }
  return html`<div class="head"><h1><${Text}>${bucket}<//></h1>${size.data && html`<p class="soft">${count(size.data.objects)} objects, ${bytes(size.data.bytes)}</p>`}</div>
    <nav class="crumb mono" aria-label="Folders"><${Link} to=${pageOf(bucket)}><${Text}>${bucket}<//><//>${foldersOf(prefix).map(([name, to]) => html` / <${Link} to=${pageOf(bucket, { prefix: to })}><${Text} most=${60}>${name || "(no name)"}<//><//>`)}</nav>
    <form class="bar" role="search" onSubmit=${(event) => event.preventDefault()}>
      <input type="search" aria-label="Keys that begin with" placeholder="Keys that begin with" spellcheck="false" value=${prefix} onInput=${(event) => setQuery({ prefix: event.target.value, after: "" })} />
    </form>
    ${may("deploy") && html`<${Upload} bucket=${bucket} folder=${folder} onDone=${again} />`}
    <${Loaded} query=${query}>${({ objects, prefixes = [], cursor }) => {
      const rows = [...prefixes.map((key) => ({ key, isFolder: true })), ...objects];
      return html`${rows.length === 0 && (prefix || after
          ? html`<${Empty} title="Nothing begins with this"><p><button type="button" onClick=${() => setQuery({ prefix: "", after: "" })}>To the whole bucket</button></p><//>`
          : html`<${Empty} title="No objects yet"><p>Choose files above, or from a terminal:</p><pre tabindex="0"><code>atoll r2 upload ${bucket} ./folder --api ${location.origin}</code></pre><//>`)}
        ${rows.length > 0 && html`<${Rows} rows=${rows} columns=${columns} caption="Folders and objects" />`}
        <${PageTurn} cursor=${cursor} />`;
    }}<//>
    ${may("deploy") && size.data && html`<section><h2>Delete</h2>
      <p class="soft">The bucket goes with all its objects. Workers that are bound to it fail when they use it.</p>
      <button type="button" class="bad" onClick=${() => setDropping(true)}>Delete the bucket</button></section>`}
    ${isDropping && html`<${Sure} title="Delete the bucket" word=${bucket} verb="Delete" act=${() => call("DELETE", `${path}?force=true`)} onClose=${() => setDropping(false)} onDone=${() => go("/data/r2")}>
      <p>${count(size.data.objects)} objects are deleted. This cannot be undone.</p><//>`}`;
}

function Upload({ bucket, folder, onDone }) {
  const input = useRef(null);
  const [replace, setReplace] = useState([]);
  const [told, setTold] = useState("");
  const store = useAction(async (files, mayReplace) => {
    setTold("");
    const taken = [];
    for (const [number, file] of files.entries()) {
      setTold(`${file.name}, ${number + 1} of ${files.length}`);
      const key = folder + file.name;
      if (!mayReplace && (await exists(bucket, key))) taken.push(file);
      else await call("PUT", `${pathOf(bucket)}/objects/${encodeURIComponent(key)}`, file, { timeout: 0, headers: { "Content-Type": file.type || "application/octet-stream" } });
    }
    setTold(`${files.length - taken.length} stored.`);
    setReplace(taken);
    input.current.value = "";
    onDone();
  });
  return html`<div class="bar upload">
      <label>Store files in <code><${Text} most=${60}>${folder || "the bucket"}<//></code> <input ref=${input} type="file" multiple disabled=${store.busy} onChange=${(event) => store.run([...event.target.files], false)} /></label>
      <span role="status" class="soft"><${Text}>${told}<//></span>
    </div>
    ${replace.length > 0 && html`<div class="notice"><p>${replace.length === 1 ? html`There is <code><${Text}>${replace[0].name}<//></code> already.` : `${replace.length} of the files are there already.`}</p>
      <p class="acts"><button type="button" class="bad" onClick=${() => store.run(replace, true)}>Replace</button><button type="button" onClick=${() => setReplace([])}>Keep what is there</button></p></div>`}
    ${store.error && html`<${Failed} error=${store.error} />`}`;
}

async function exists(bucket, key) {
  const { objects } = await get(`${pathOf(bucket)}/objects`, { prefix: key, limit: 1 });
  return objects[0]?.key === key;
}
