// One value: what it is, when it expires, its metadata; change, replace and delete it.
import { useState } from "preact/hooks";
import { at, call } from "#dashboard/core/api.js";
import { time } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { useAction, useQuery } from "#dashboard/core/query.js";
import { go, Link } from "#dashboard/core/router.js";
import { may } from "#dashboard/core/session.js";
import { Bytes, Download, fileName, readStart } from "#dashboard/parts/bytes.js";
import { Copy, Dialog, Text } from "#dashboard/parts/pieces.js";
import { Empty, Failed, Loaded } from "#dashboard/parts/states.js";
import { Entry } from "./form.js";

export function Value({ namespace, name }) {
  const path = at`/api/kv/${namespace}/values/${name}`;
  const back = `/data/kv/${encodeURIComponent(namespace)}`;
  const query = useQuery((signal) => readStart(path, signal), [namespace, name]);
  const [open, setOpen] = useState("");
  const [told, setTold] = useState("");
  const remove = useAction(() => call("DELETE", path));
  const drop = async () => {
    if ((await remove.run()) !== null) go(back);
  };
  if (query.error?.status === 404) {
    return html`<${Empty} title="There is no such key" whole><p>It may have expired, or was deleted. <${Link} to=${back}>All keys of ${namespace}<//></p><//>`;
  }
  return html`<p class="crumb"><${Link} to=${back}><${Text}>${namespace}<//><//></p>
    <div class="head"><h1 class="mono"><${Text} most=${600}>${name}<//></h1><${Copy} text=${name} label="Copy key" /></div>
    <p role="status" class="told">${told}</p>
    <${Loaded} query=${query}>${(value) => html`
      <dl class="facts">
        <div><dt>Expires</dt><dd>${expiryOf(value) ? time(expiryOf(value) * 1_000) : "never"}</dd></div>
        <div><dt>Metadata</dt><dd>${metadataOf(value) ? html`<code><${Text} most=${1_100}>${metadataOf(value)}<//></code>` : "none"}</dd></div>
      </dl>
      <${Bytes} bytes=${value.bytes} isCut=${value.isCut} size=${value.size} />
      <p class="acts">
        ${may("deploy") && html`<button type="button" class="primary" onClick=${() => setOpen("edit")}>Edit</button>`}
        <${Download} path=${path} name=${fileName(name)} />
        ${may("deploy") && html`<button type="button" class="bad" onClick=${() => setOpen("delete")}>Delete</button>`}
      </p>
      ${open === "edit" && html`<${Entry} namespace=${namespace} name=${name} value=${value} expiration=${expiryOf(value)} metadata=${metadataOf(value)}
        onClose=${() => setOpen("")} onDone=${() => (setOpen(""), setTold("The value is stored."), query.again())} />`}`}<//>
    ${open === "delete" && html`<${Dialog} title="Delete the key" onClose=${() => setOpen("")}>
      <p>Its value is gone at once: <code><${Text}>${name}<//></code></p>
      ${remove.error && html`<${Failed} error=${remove.error} />`}
      <p class="right"><button type="button" onClick=${() => setOpen("")}>Cancel</button><button type="button" class="bad" disabled=${remove.busy} onClick=${drop}>Delete</button></p>
    <//>`}`;
}

const expiryOf = ({ headers }) => Number(headers.get("x-atoll-expiration") ?? 0);
const metadataOf = ({ headers }) => headers.get("x-atoll-metadata") ?? "";
