// The rows of a table of SQLite, a page at a time. Changes are collected, shown as one transaction, and run only then.
import { useState } from "preact/hooks";
import { html } from "../core/html.js";
import { useQuery } from "../core/query.js";
import { cellOf, MOST_COLUMNS, pageOf, rowidOf } from "../core/sql.js";
import { visible } from "../core/format.js";
import { CellForm, ReviewForm, RowForm } from "./sql_forms.js";
import { Text } from "./pieces.js";
import { Empty, Loaded } from "./states.js";
import { cursorNow, PageTurn } from "./things.js";

const PAGE = 50;
// Columns, and with each whether the table is WITHOUT ROWID.
const COLUMNS = "SELECT name, type, hidden, (SELECT wr FROM pragma_table_list(?1)) FROM pragma_table_xinfo(?1)";
const none = () => ({ gone: new Set(), cells: new Map(), added: [] });

/** `ask(sql, params, signal)` gives { columns, rows }. `apply(statements)` runs them in one transaction; without it rows only show. */
export function SqlTable({ table, isView = false, ask, apply }) {
  const after = cursorNow();
  const [changes, setChanges] = useState(none);
  const [open, setOpen] = useState(null);
  const [told, setTold] = useState(null);
  const query = useQuery(async (signal) => read({ table, isView, ask, signal, after }), [table, after]);
  const total = changes.gone.size + changes.cells.size + changes.added.length;
  const done = (words) => {
    setOpen(null);
    setChanges(none());
    setTold(words);
    query.again();
  };
  return html`<${Loaded} query=${query}>${({ columns, rowid, rows, next }) => {
    const canEdit = Boolean(apply && rowid);
    const set = (row, column, value) => {
      const cells = new Map(changes.cells);
      cells.set(row, new Map(cells.get(row)).set(column, value));
      setChanges({ ...changes, cells });
      setOpen(null);
    };
    const toggle = (row) => {
      const gone = new Set(changes.gone);
      if (!gone.delete(row)) gone.add(row);
      setChanges({ ...changes, gone });
    };
    return html`
      <p class="acts">
        ${canEdit && html`<button type="button" onClick=${() => setOpen({ is: "row" })}>Add a row</button>`}
        ${total > 0 && html`<button type="button" class="primary" onClick=${() => setOpen({ is: "review" })}>Review ${total} ${total === 1 ? "change" : "changes"}</button>
          <button type="button" onClick=${() => setChanges(none())}>Discard</button>`}
        ${apply && !rowid && html`<span class="soft">Rows of this ${isView ? "view" : "table"} have no number of their own. Change them with SQL.</span>`}
      </p>
      <div role="status">${told}</div>
      ${rows.length === 0 && !changes.added.length
        ? html`<${Empty} title=${after ? "No more rows" : "No rows yet"}>${apply && !after && html`<p>Add one above, or with <code>INSERT</code> in the SQL console.</p>`}<//>`
        : html`<div class="table-box" tabindex="0" role="region" aria-label=${`Rows of ${visible(table)}`}><table class="grid">
          <thead><tr>${columns.map(({ name, type }) => html`<th scope="col"><${Text} most=${60}>${name}<//> <span class="soft">${visible(type).slice(0, 24).toLowerCase()}</span></th>`)}${canEdit && html`<th scope="col"><span class="hidden">Acts</span></th>`}</tr></thead>
          <tbody>
            ${rows.map(({ row, cells }) => html`<tr key=${row} class=${changes.gone.has(row) ? "is-gone" : ""}>
              ${cells.map((cell, place) => {
                const { name, hidden } = columns[place];
                const changed = changes.cells.get(row)?.get(name);
                const show = () => setOpen({ is: "cell", row, column: name, changed, isFixed: hidden > 1 });
                return html`<td class=${changed ? "is-changed" : ""}><${Cell} cell=${changed ?? cell} show=${rowid ? show : null} /></td>`;
              })}
              ${canEdit && html`<td class="right"><button type="button" class="quiet bad-text" aria-pressed=${changes.gone.has(row)} onClick=${() => toggle(row)}>${changes.gone.has(row) ? "Keep" : "Delete"}</button></td>`}
            </tr>`)}
            ${changes.added.map((values, number) => html`<tr class="is-new">
              ${columns.map(({ name }) => html`<td class="is-changed">${values.has(name) ? html`<${Cell} cell=${values.get(name)} />` : html`<span class="soft">default</span>`}</td>`)}
              <td class="right"><button type="button" class="quiet bad-text" onClick=${() => setChanges({ ...changes, added: changes.added.filter((_, place) => place !== number) })}>Drop</button></td>
            </tr>`)}
          </tbody></table></div>`}
      ${columns.length === MOST_COLUMNS && html`<p class="soft">Only the first ${MOST_COLUMNS} columns are here.</p>`}
      <${PageTurn} cursor=${next} />
      ${open?.is === "cell" && html`<${CellForm} ...${open} table=${table} rowid=${rowid} ask=${ask} canEdit=${canEdit && !open.isFixed} onSet=${(value) => set(open.row, open.column, value)} onClose=${() => setOpen(null)} />`}
      ${open?.is === "row" && html`<${RowForm} columns=${columns.filter(({ hidden }) => !hidden)} onAdd=${(values) => (setChanges({ ...changes, added: [...changes.added, values] }), setOpen(null))} onClose=${() => setOpen(null)} />`}
      ${open?.is === "review" && html`<${ReviewForm} table=${table} rowid=${rowid} changes=${changes} apply=${apply} onDone=${done} onClose=${() => setOpen(null)} />`}`;
  }}<//>`;
}

async function read({ table, isView, ask, signal, after }) {
  const found = await ask(COLUMNS, [table], signal);
  const columns = found.rows.map(([name, type, hidden]) => ({ name, type, hidden })).slice(0, MOST_COLUMNS);
  const hasNumbers = !isView && !found.rows[0]?.[3];
  const rowid = hasNumbers ? rowidOf(columns) : "";
  const answer = await ask(pageOf(table, columns, rowid, PAGE), [after || (rowid ? "-9223372036854775808" : "0")], signal);
  const rows = answer.rows.slice(0, PAGE).map(([row, ...cells], place) => ({ row: row ?? String(place), cells: cells.map(cellOf) }));
  const next = answer.rows.length <= PAGE ? "" : rowid ? rows.at(-1).row : String(Number(after || 0) + PAGE);
  return { columns, rowid, rows, next };
}

function Cell({ cell: { kind, text, length = text.length }, show }) {
  const shown = kind === "null" ? "NULL" : kind === "blob" ? `X'${text}'` : text;
  const inner = html`${shown ? html`<${Text} most=${120}>${shown}<//>` : html`<span class="soft">empty</span>`}${length > text.length && kind === "text" ? "…" : ""}${kind === "blob" ? html` <span class="soft">${length} bytes</span>` : ""}`;
  const look = kind === "null" ? "soft" : kind === "number" ? "mono" : "";
  return show ? html`<button type="button" class=${`cell ${look}`} onClick=${show}>${inner}</button>` : html`<span class=${look}>${inner}</span>`;
}
