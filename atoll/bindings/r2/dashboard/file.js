// One object: its headers and checksums, a preview as text or picture, download and delete. Its own Content-Type is never believed.
import { useState } from "preact/hooks";
import { call, get } from "#dashboard/core/api.js";
import { bytes, time } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { useAction, useQuery } from "#dashboard/core/query.js";
import { go, Link } from "#dashboard/core/router.js";
import { may } from "#dashboard/core/session.js";
import { Bytes, Download, fileName, readStart } from "#dashboard/parts/bytes.js";
import { Copy, Dialog, Text } from "#dashboard/parts/pieces.js";
import { Empty, Failed, Loaded } from "#dashboard/parts/states.js";
import { foldersOf, pageOf, pathOf } from "./places.js";

export function OneFile({ bucket, name }) {
  const key = encodeURIComponent(name);
  const path = `${pathOf(bucket)}/objects/${key}`;
  const folder = foldersOf(name).at(-1)?.[1] ?? "";
  const facts = useQuery((signal) => get(`${pathOf(bucket)}/facts/${key}`, {}, { signal }), [bucket, name]);
  const [isDropping, setDropping] = useState(false);
  const remove = useAction(() => call("DELETE", path));
  const drop = async () => {
    if ((await remove.run()) !== null) go(pageOf(bucket, { prefix: folder }));
  };
  if (facts.error?.status === 404) {
    return html`<${Empty} title="There is no such object" whole><p>It may be deleted by now. <${Link} to=${pageOf(bucket)}>To the bucket<//></p><//>`;
  }
  return html`<nav class="crumb mono" aria-label="Folders"><${Link} to=${pageOf(bucket)}><${Text}>${bucket}<//><//>${foldersOf(name).map(([part, to]) => html` / <${Link} to=${pageOf(bucket, { prefix: to })}><${Text} most=${60}>${part || "(no name)"}<//><//>`)}</nav>
    <div class="head"><h1 class="mono"><${Text} most=${600}>${name.slice(folder.length) || name}<//></h1><${Copy} text=${name} label="Copy key" /></div>
    <${Loaded} query=${facts}>${(found) => html`
      <p class="acts wide"><${Download} path=${path} name=${fileName(name)} />
        ${may("deploy") && html`<button type="button" class="bad" onClick=${() => setDropping(true)}>Delete</button>`}</p>
      <section><h2>Preview</h2><${Preview} path=${path} version=${found.version} /></section>
      <section><h2>Facts</h2><dl class="facts">
        ${[["Size", bytes(found.size)], ["Stored", time(found.uploaded_at)], ["ETag", found.etag], ["Version", found.version], ["Storage class", found.storage_class],
          ...Object.entries(found.http), ...Object.entries(found.custom).map(([field, value]) => [`custom: ${field}`, value]), ...Object.entries(found.checksums)]
          .map(([field, value]) => html`<div><dt><${Text} most=${80}>${field}<//></dt><dd><${Text} most=${500}>${value instanceof Object ? JSON.stringify(value) : value}<//></dd></div>`)}
      </dl></section>`}<//>
    ${isDropping && html`<${Dialog} title="Delete the object" onClose=${() => setDropping(false)}>
      <p>It is gone at once: <code><${Text}>${name}<//></code></p>
      ${remove.error && html`<${Failed} error=${remove.error} />`}
      <p class="right"><button type="button" onClick=${() => setDropping(false)}>Cancel</button><button type="button" class="bad" disabled=${remove.busy} onClick=${drop}>Delete</button></p>
    <//>`}`;
}

function Preview({ path, version }) {
  const query = useQuery((signal) => readStart(path, signal), [path, version]);
  return html`<${Loaded} query=${query}>${({ bytes: content, isCut, size }) => html`<${Bytes} bytes=${content} isCut=${isCut} size=${size} />`}<//>`;
}
