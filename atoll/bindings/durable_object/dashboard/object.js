// One object: its alarm, its sockets, its tables and keys, SQL, and its end. Looking makes no instance of its class.
import { useMemo, useState } from "preact/hooks";
import { at, call, get } from "#dashboard/core/api.js";
import { bytes, count, time } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { useAction, useQuery } from "#dashboard/core/query.js";
import { go, Link, route } from "#dashboard/core/router.js";
import { may } from "#dashboard/core/session.js";
import { Ago, Copy, Text } from "#dashboard/parts/pieces.js";
import { SqlConsole } from "#dashboard/parts/sql_console.js";
import { SqlTable } from "#dashboard/parts/sql_table.js";
import { Empty, Failed, Loaded } from "#dashboard/parts/states.js";
import { cursorNow, PageTurn, Rows } from "#dashboard/parts/things.js";
import { Sure } from "#dashboard/views/settings.js";

const PAGE = 100;
const TABS = [["", "State"], ["sql", "SQL"], ["sockets", "Sockets"]];

export function OneObject({ worker, name, id }) {
  const path = at`/api/objects/${worker}/${name}/${id}`;
  const up = at`/data/objects/${worker}/${name}`;
  const here = `${up}/${id}`;
  const asked = route.value.query;
  const tab = asked.get("tab") ?? "";
  const table = asked.get("table") ?? "";
  const after = tab || table ? "" : cursorNow();
  const query = useQuery((signal) => get(path, { limit: PAGE, cursor: after }, { signal }), [path, after]);
  const [open, setOpen] = useState("");
  const ask = useMemo(() => (sql, params, signal) => call("POST", `${path}/query`, { sql, params }, { signal }), [path]);
  const run = async (sql, writes) => {
    const found = await call("POST", `${path}/${writes ? "execute" : "query"}`, { sql }, { timeout: 0 });
    return [{ columns: found.columns, rows: found.rows, read: found.rows_read, written: found.rows_written }];
  };
  if (query.error?.status === 404) {
    return html`<${Empty} title="There is no such object" whole><p><${Link} to=${up}>All objects of ${name}<//></p><//>`;
  }
  return html`<p class="crumb"><${Link} to=${up}><${Text}>${name}<//><//></p>
    <div class="head"><h1 class="mono id">${id}</h1><${Copy} text=${id} label="Copy id" /></div>
    <nav class="tabs" aria-label="Views of the object">
      ${TABS.map(([key, words]) => html`<${Link} to=${key ? `${here}?tab=${key}` : here} aria-current=${key === tab ? "page" : undefined}>${words}<//>`)}
    </nav>
    <${Loaded} query=${query}>${(state) =>
      tab === "sockets"
        ? html`<${Sockets} path=${path} />`
        : state.storage === "kv" && (tab === "sql" || table)
          ? html`<${Empty} title="This class has no SQL"><p>It was made with <code>new_classes</code>.</p><//>`
          : tab === "sql"
            ? html`<${SqlConsole} run=${run} placeholder="SELECT * FROM sqlite_schema" onWritten=${query.again} />`
            : table
              ? html`<p class="crumb"><${Link} to=${here}>All tables and keys<//></p><h2><${Text}>${table}<//></h2>
                  <${SqlTable} key=${table} table=${table} isView=${state.tables.find((each) => each.name === table)?.type === "view"} ask=${ask} />`
              : html`<${State} state=${state} path=${path} here=${here} after=${after} again=${query.again} />
                  ${may("deploy") && html`<section><h2>Delete</h2><p class="soft">Everything that the object stores goes, and its alarm. Its calls fail.</p>
                    <button type="button" class="bad" onClick=${() => setOpen("delete")}>Delete the object</button></section>`}`}<//>
    ${open === "delete" && html`<${Sure} title="Delete the object" word=${id.slice(0, 8)} verb="Delete" act=${() => call("DELETE", path)} onClose=${() => setOpen("")} onDone=${() => go(up)}>
      <p>This cannot be undone.</p><//>`}`;
}

const rowsOf = (rows) => (rows === null ? "–" : rows < 0 ? "> 10,000" : count(rows));
const KEYS = [
  { name: "Key", of: ({ key }) => html`<code><${Text}>${key}<//></code>` },
  { name: "Value", of: ({ value }) => (value === null ? html`<span class="soft">too large to show</span>` : html`<code class="small"><${Text} most=${400}>${value}<//></code>`) },
  { name: "Size", number: true, of: (each) => bytes(each.bytes) },
];

function State({ state, path, here, after, again }) {
  const tables = [
    { name: "Table", of: ({ name }) => (state.storage === "kv" ? html`<${Text}>${name}<//>` : html`<${Link} to=${`${here}?table=${encodeURIComponent(name)}`}><${Text}>${name}<//><//>`) },
    { name: "Rows", number: true, of: ({ rows }) => rowsOf(rows) },
    { name: "Made by", of: ({ sql }) => html`<code class="small"><${Text} most=${160}>${sql.replace(/\s+/g, " ")}<//></code>` },
  ];
  const isEmpty = !state.tables.length && !state.keys.length && !after;
  return html`<dl class="figures">
      <div><dt>Size</dt><dd>${bytes(state.bytes)}</dd></div>
      <div><dt>Storage</dt><dd>${state.storage}</dd></div>
      <div><dt>Sockets</dt><dd>${count(state.sockets)}</dd></div>
      <div><dt>Facets</dt><dd>${count(state.facets.length)}</dd></div>
    </dl>
    <${Alarm} alarm=${state.alarm} path=${path} again=${again} />
    ${isEmpty && html`<${Empty} title="The object stores nothing"><p>It may never have been used, or it deleted what it had.</p><//>`}
    ${state.tables.length > 0 && html`<section><h2>Tables</h2><${Rows} rows=${state.tables} columns=${tables} /></section>`}
    ${(state.keys.length > 0 || after) && html`<section><h2>Keys</h2>${state.keys.length > 0 && html`<${Rows} rows=${state.keys} columns=${KEYS} />`}<${PageTurn} cursor=${state.cursor} /></section>`}`;
}

function Alarm({ alarm, path, again }) {
  const [moment, setMoment] = useState("");
  const change = useAction(async (act) => {
    await act();
    again();
  });
  const set = (event) => {
    event.preventDefault();
    change.run(() => call("PUT", `${path}/alarm`, { at: Date.parse(moment) }));
  };
  return html`<section><h2>Alarm</h2>
    <p>${alarm ? html`<time datetime=${alarm}>${time(alarm)}</time> <span class="soft"><${Ago} at=${alarm} /></span>` : html`<span class="soft">None is set.</span>`}</p>
    ${may("deploy") && html`<form class="bar" onSubmit=${set}>
      <label>Run alarm() at <input type="datetime-local" step="1" required value=${moment} onInput=${(event) => setMoment(event.target.value)} /></label>
      <button type="submit" disabled=${change.busy}>Set</button>
      <button type="button" disabled=${change.busy} onClick=${() => change.run(() => call("PUT", `${path}/alarm`, { at: null }))}>Run now</button>
      ${alarm && html`<button type="button" class="bad" disabled=${change.busy} onClick=${() => change.run(() => call("DELETE", `${path}/alarm`))}>Delete</button>`}
    </form>`}
    ${change.error && html`<${Failed} error=${change.error} />`}
  </section>`;
}

const SOCKETS = [
  { name: "Socket", of: ({ number }) => number },
  { name: "Tags", of: ({ tags }) => (tags.length ? html`<${Text}>${tags.join(", ")}<//>` : "–") },
  { name: "Attachment", number: true, of: ({ attachment_bytes }) => bytes(attachment_bytes) },
  { name: "Last automatic answer", of: ({ responded_at }) => html`<${Ago} at=${responded_at} />` },
];

function Sockets({ path }) {
  const after = cursorNow();
  const query = useQuery((signal) => get(`${path}/sockets`, { limit: PAGE, cursor: after }, { signal }), [path, after], { every: 5_000 });
  return html`<${Loaded} query=${query}>${({ sockets, cursor }) => html`
    ${sockets.length ? html`<${Rows} rows=${sockets} columns=${SOCKETS} />` : html`<${Empty} title="No WebSocket is open"><p>Those that the object took with <code>acceptWebSocket()</code> are listed here.</p><//>`}
    <${PageTurn} cursor=${cursor} />`}<//>`;
}
