// The windows of a table of SQLite: one value, a new row, and the transaction that changes make.
import { useMemo, useState } from "preact/hooks";
import { lineEnd } from "../core/bytes.js";
import { html } from "../core/html.js";
import { useAction, useQuery } from "../core/query.js";
import { literal, MOST_EDITED, statementsOf, wholeOf } from "../core/sql.js";
import { Copy, Dialog, Text } from "./pieces.js";
import { Failed, Loaded } from "./states.js";

const KINDS = { text: "text", number: "number", blob: "BLOB in hex", null: "NULL" };
const KIND_OF = { text: "text", integer: "number", real: "number", blob: "blob", null: "null" };

function ValueFields({ value, onChange, rows = 6, id }) {
  return html`<div class="pair"><label>Kind <select value=${value.kind} onChange=${(event) => onChange({ ...value, kind: event.target.value })}>
      ${Object.entries(KINDS).map(([kind, name]) => html`<option value=${kind}>${name}</option>`)}
    </select></label></div>
    ${value.kind !== "null" && html`<label>Value <textarea id=${id} class="mono" rows=${rows} spellcheck="false" value=${value.text} onInput=${(event) => onChange({ ...value, text: event.target.value })}></textarea></label>`}`;
}

const problemOf = (value) => {
  try {
    literal(value);
    return "";
  } catch (error) {
    return error.message;
  }
};

export function CellForm({ table, column, row, rowid, ask, changed, canEdit, onSet, onClose }) {
  const query = useQuery(async (signal) => {
    const { rows } = await ask(wholeOf(table, column, rowid), [row], signal);
    if (!rows.length) throw new Error("This row is not there any more.");
    const [[type, text]] = rows;
    return { kind: KIND_OF[type], text: text ?? "", isLarge: type !== "null" && text === null };
  }, [table, column, row]);
  return html`<${Dialog} title=${column.slice(0, 80)} onClose=${onClose}>
    <${Loaded} query=${query}>${(stored) => {
      if (stored.isLarge) return html`<p>The value is larger than ${MOST_EDITED >> 10} KB. Read or change it with SQL.</p>`;
      const end = stored.kind === "text" ? lineEnd(stored.text) : "\n";
      if (!canEdit || end === null) {
        return html`<pre class="value" tabindex="0"><${Text} most=${64 << 10}>${stored.kind === "null" ? "NULL" : stored.text}<//></pre>
          ${end === null && html`<p class="soft">Its lines end in two ways, of which a form keeps one. Change it with SQL.</p>`}
          <p class="right"><${Copy} text=${stored.text} /><button type="button" onClick=${onClose}>Close</button></p>`;
      }
      return html`<${OneValue} start=${changed ?? stored} end=${end} onSet=${onSet} onClose=${onClose} />`;
    }}<//>
  <//>`;
}

function OneValue({ start, end, onSet, onClose }) {
  const [value, setValue] = useState({ kind: start.kind, text: start.text.replaceAll("\r\n", "\n") });
  const kept = value.kind === "text" ? { ...value, text: value.text.replaceAll("\n", end) } : value;
  const problem = problemOf(kept);
  const submit = (event) => {
    event.preventDefault();
    if (kept.kind === start.kind && kept.text === start.text) onClose();
    else if (!problem) onSet(kept);
  };
  return html`<form onSubmit=${submit}>
    <${ValueFields} value=${value} onChange=${setValue} />
    <p class="bad-text" role="status">${problem}</p>
    <p class="soft small">Nothing is stored yet: you see all changes as one transaction first.</p>
    <p class="right"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${Boolean(problem)}>Change</button></p>
  </form>`;
}

export function RowForm({ columns, onAdd, onClose }) {
  const [values, setValues] = useState(() => new Map());
  const set = (name, value) => {
    const next = new Map(values);
    if (value === null) next.delete(name);
    else next.set(name, value);
    setValues(next);
  };
  const problem = [...values].map(([name, value]) => problemOf(value) && `${name}: ${problemOf(value)}`).find(Boolean) ?? "";
  const submit = (event) => {
    event.preventDefault();
    if (!problem) onAdd(values);
  };
  return html`<${Dialog} title="Add a row" onClose=${onClose}>
    <form onSubmit=${submit}>
      ${columns.map(({ name, type }) => {
        const value = values.get(name);
        return html`<fieldset class="field"><legend><${Text} most=${60}>${name}<//> <span class="soft">${type.slice(0, 24).toLowerCase()}</span></legend>
          <div class="pair"><label>Kind <select value=${value?.kind ?? ""} onChange=${(event) => set(name, event.target.value ? { text: value?.text ?? "", kind: event.target.value } : null)}>
            <option value="">default of the column</option>${Object.entries(KINDS).map(([kind, words]) => html`<option value=${kind}>${words}</option>`)}
          </select></label>
          ${value && value.kind !== "null" && html`<label>Value <input type="text" class="mono" spellcheck="false" autocomplete="off" value=${value.text} onInput=${(event) => set(name, { ...value, text: event.target.value })} /></label>`}</div>
        </fieldset>`;
      })}
      <p class="bad-text" role="status">${problem}</p>
      <p class="right"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${Boolean(problem)}>Add</button></p>
    </form>
  <//>`;
}

/** What is shown here is, letter by letter, what the node runs. */
export function ReviewForm({ table, rowid, changes, apply, onDone, onClose }) {
  const statements = useMemo(() => statementsOf(table, rowid, changes), [changes]);
  const run = useAction(() => apply(statements));
  const start = async () => {
    const words = await run.run();
    if (words !== null) onDone(words);
  };
  const text = `${statements.join(";\n")};`;
  return html`<${Dialog} title="One transaction" onClose=${onClose}>
    <p>These statements run together: all of them, or none.</p>
    <pre class="value" tabindex="0"><code><${Text} most=${64 << 10}>${text}<//></code></pre>
    ${run.error && html`<${Failed} error=${run.error} />`}
    <p class="right"><${Copy} text=${text} /><button type="button" onClick=${onClose}>Cancel</button><button type="button" class="primary" disabled=${run.busy} onClick=${start}>${run.busy ? "Running…" : "Run"}</button></p>
  <//>`;
}
