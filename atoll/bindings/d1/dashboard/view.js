// The pages of D1: the databases, and of one its tables, a console for SQL, and the way back in time. ?tab and ?table say which.
import { useMemo } from "preact/hooks";
import { get } from "#dashboard/core/api.js";
import { bytes } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { useQuery } from "#dashboard/core/query.js";
import { Link, route } from "#dashboard/core/router.js";
import { Ago, Text } from "#dashboard/parts/pieces.js";
import { SqlConsole } from "#dashboard/parts/sql_console.js";
import { Empty, Loaded } from "#dashboard/parts/states.js";
import { Resources } from "#dashboard/parts/things.js";
import { mayChange, pathOf, readerOf, runnerOf } from "./ask.js";
import { Table, Tables } from "./tables.js";
import { TimeTravel } from "./time_travel.js";

const COLUMNS = [
  { name: "Size", number: true, of: ({ file_size }) => bytes(file_size) },
  { name: "Created", of: ({ created_at }) => html`<${Ago} at=${created_at} />` },
];
const TABS = [["", "Tables"], ["sql", "SQL"], ["time", "Time Travel and files"]];

export function View({ rest: [name] }) {
  if (name === undefined) {
    return html`<${Resources} at="d1" path="/api/d1" field="databases" noun="database" columns=${COLUMNS} command=${`atoll d1 create shop --api ${location.origin}`} />`;
  }
  return html`<${Database} name=${name} />`;
}

function Database({ name }) {
  const query = useQuery((signal) => get(pathOf(name), {}, { signal }), [name]);
  const reader = useMemo(() => readerOf(name), [name]);
  const asked = route.value.query;
  const tab = asked.get("tab") ?? "";
  const table = asked.get("table");
  const here = `/data/d1/${encodeURIComponent(name)}`;
  if (query.error?.status === 404) {
    return html`<${Empty} title="There is no such database" whole><p>It may be deleted, or belong to another tenant. <${Link} to="/data/d1">All databases<//></p><//>`;
  }
  return html`<div class="head"><h1><${Text}>${name}<//></h1>${query.data && html`<p class="soft">${bytes(query.data.file_size)}</p>`}</div>
    <nav class="tabs" aria-label="Views of the database">
      ${TABS.map(([id, words]) => html`<${Link} to=${id ? `${here}?tab=${id}` : here} aria-current=${id === tab ? "page" : undefined}>${words}<//>`)}
    </nav>
    <${Loaded} query=${query}>${() =>
      tab === "sql"
        ? html`<${SqlConsole} run=${runnerOf(name)} placeholder="SELECT name FROM sqlite_schema" onWritten=${query.again} />`
        : tab === "time"
          ? html`<${TimeTravel} name=${name} />`
          : table
            ? html`<${Table} key=${table} database=${name} table=${table} ask=${reader} canChange=${mayChange()} />`
            : html`<${Tables} database=${name} ask=${reader} />`}<//>`;
}
