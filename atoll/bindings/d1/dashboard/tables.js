// The tables of a database, and one of them with its rows.
import { useQuery } from "#dashboard/core/query.js";
import { html } from "#dashboard/core/html.js";
import { Link } from "#dashboard/core/router.js";
import { Badge, Text } from "#dashboard/parts/pieces.js";
import { SqlTable } from "#dashboard/parts/sql_table.js";
import { Empty, Loaded } from "#dashboard/parts/states.js";
import { Named } from "#dashboard/parts/things.js";
import { bookmarkOf, runnerOf } from "./ask.js";
import { TakeBack } from "./time_travel.js";

const TABLES = String.raw`SELECT name, type, substr(sql, 1, 4000) FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE '\_cf\_%' ESCAPE '\' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name LIMIT 2000`;
const placeOf = (database, table) => `/data/d1/${encodeURIComponent(database)}?table=${encodeURIComponent(table)}`;

async function tablesOf(ask, signal) {
  const { rows } = await ask(TABLES, [], signal);
  return rows.map(([name, type, sql]) => ({ name, type, sql: sql ?? "" }));
}

export function Tables({ database, ask }) {
  const query = useQuery((signal) => tablesOf(ask, signal), [database]);
  const columns = [
    { name: "Table", of: ({ name }) => html`<${Link} to=${placeOf(database, name)}><${Text}>${name}<//><//>` },
    { name: "Kind", of: ({ type }) => html`<${Badge}>${type}<//>` },
    { name: "Made by", of: ({ sql }) => html`<code class="small"><${Text} most=${160}>${sql.replace(/\s+/g, " ")}<//></code>` },
  ];
  return html`<${Loaded} query=${query}>${(tables) => tables.length
    ? html`<${Named} found=${tables} noun="table" columns=${columns} />`
    : html`<${Empty} title="No tables yet"><p>Make them with migrations, or with SQL:</p><pre tabindex="0"><code>atoll d1 execute ${database} --command "CREATE TABLE notes (text)"</code></pre><//>`}<//>`;
}

export function Table({ database, table, ask, canChange }) {
  const query = useQuery(async (signal) => {
    const found = (await tablesOf(ask, signal)).find(({ name }) => name === table);
    return found ?? { type: "" };
  }, [database, table]);
  const apply = async (statements) => {
    const bookmark = await bookmarkOf(database);
    const results = await runnerOf(database)(statements.join(";\n"), true);
    const idle = results.filter(({ changes }) => !changes).length;
    return html`<div class="notice"><div><p>${results.length} ${results.length === 1 ? "statement" : "statements"} ran in one transaction.${idle ? ` ${idle} of them changed nothing: the row was not there any more.` : ""}</p></div>
      <${TakeBack} database=${database} bookmark=${bookmark} /></div>`;
  };
  return html`<p class="crumb"><${Link} to=${`/data/d1/${encodeURIComponent(database)}`}>All tables<//></p>
    <h2><${Text}>${table}<//></h2>
    <${Loaded} query=${query}>${({ type, sql }) => type
      ? html`<${SqlTable} table=${table} isView=${type === "view"} ask=${ask} apply=${canChange ? apply : undefined} />
          <details><summary>How it was made</summary><pre tabindex="0"><code><${Text} most=${4_000}>${sql}<//></code></pre></details>`
      : html`<${Empty} title="There is no such table"><p>It may be dropped by now.</p><//>`}<//>`;
}
