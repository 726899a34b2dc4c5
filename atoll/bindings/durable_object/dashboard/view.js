// The pages of Durable Objects: the classes, the objects of one, and one object.
import { useState } from "preact/hooks";
import { at, get } from "#dashboard/core/api.js";
import { bytes, count } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { useQuery } from "#dashboard/core/query.js";
import { go, Link } from "#dashboard/core/router.js";
import { Badge, Text } from "#dashboard/parts/pieces.js";
import { Empty, Loaded } from "#dashboard/parts/states.js";
import { cursorNow, Named, PageTurn, Rows } from "#dashboard/parts/things.js";
import { OneObject } from "./object.js";

const PAGE = 100;
const placeOf = (...parts) => ["/data/objects", ...parts.map(encodeURIComponent)].join("/");

export function View({ rest: [worker, name, id] }) {
  if (id !== undefined) return html`<${OneObject} key=${id} worker=${worker} name=${name} id=${id} />`;
  return name === undefined ? html`<${Classes} />` : html`<${Objects} worker=${worker} name=${name} />`;
}

const CLASSES = [
  { name: "Class", of: (each) => html`<${Link} to=${placeOf(each.worker, each.class_name)}><${Text}>${each.class_name}<//><//> ${each.storage === "kv" && html`<${Badge}>kv<//>`}` },
  { name: "Worker", of: ({ worker }) => html`<${Text}>${worker}<//>` },
  { name: "Objects", number: true, of: ({ objects }) => count(objects) },
  { name: "Size", number: true, of: (each) => bytes(each.bytes) },
  { name: "In use", number: true, of: ({ live }) => count(live) },
  { name: "Sockets", number: true, of: ({ sockets }) => count(sockets) },
];

function Classes() {
  const query = useQuery((signal) => get("/api/objects", {}, { signal }), [], { every: 10_000 });
  return html`<${Loaded} query=${query}>${({ namespaces }) => namespaces.length
    ? html`<${Named} found=${namespaces} noun="class" columns=${CLASSES} textOf=${({ class_name, worker }) => `${class_name} ${worker}`} />`
    : html`<${Empty} title="No Durable Objects yet"><p>A worker brings them: a class, a binding and a migration. From a checkout of Atoll, the example:</p><pre tabindex="0"><code>atoll deploy examples/counter-object</code></pre><//>`}<//>`;
}

function Objects({ worker, name }) {
  const after = cursorNow();
  const [id, setId] = useState("");
  const query = useQuery((signal) => get(at`/api/objects/${worker}/${name}`, { limit: PAGE, cursor: after }, { signal }), [worker, name, after]);
  const open = (event) => {
    event.preventDefault();
    go(placeOf(worker, name, id.trim()));
  };
  const columns = [
    { name: "Id", of: (each) => html`<${Link} class="mono" to=${placeOf(worker, name, each.id)}>${each.id}<//>` },
    { name: "Size", number: true, of: (each) => bytes(each.bytes) },
    { name: "Sockets", number: true, of: ({ sockets }) => count(sockets) },
  ];
  return html`<div class="head"><h1><${Text}>${name}<//></h1><p class="soft">of <${Link} to=${`/workers/${encodeURIComponent(worker)}`}><${Text}>${worker}<//><//></p></div>
    <form class="bar" role="search" onSubmit=${open}>
      <label class="grow">Open an object by its id <input type="text" class="mono" required pattern="[0-9a-f]{64}" title="64 digits of hex" spellcheck="false" autocomplete="off" value=${id} onInput=${(event) => setId(event.target.value)} /></label>
      <button type="submit">Open</button>
    </form>
    <${Loaded} query=${query}>${({ objects, cursor }) => html`
      ${objects.length === 0 && !cursor && html`<${Empty} title="No object stores anything"><p>Objects appear here when they have stored something.</p><//>`}
      ${objects.length > 0 && html`<${Rows} rows=${objects} columns=${columns} caption="Objects" />`}
      <${PageTurn} cursor=${cursor} />`}<//>`;
}
