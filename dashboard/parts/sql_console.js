// A console for SQL: it reads, unless writing is asked for. The node, not the page, makes sure of that.
import { useState } from "preact/hooks";
import { count } from "../core/format.js";
import { html } from "../core/html.js";
import { useAction } from "../core/query.js";
import { shownValue } from "../core/sql.js";
import { may } from "../core/session.js";
import { More, Text } from "./pieces.js";
import { Failed } from "./states.js";

/** `run(sql, writes)` gives [{ columns, rows, read, written, changes }], one for each statement. */
export function SqlConsole({ run, placeholder = "SELECT 1", onWritten }) {
  const [sql, setSql] = useState("");
  const [writes, setWrites] = useState(false);
  const ask = useAction(async (text) => {
    const results = await run(text, writes);
    if (writes) onWritten?.();
    return { results, text };
  });
  const submit = (event) => {
    event.preventDefault();
    ask.run(sql);
  };
  const press = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
  };
  return html`<form class="console" onSubmit=${submit}>
      <label>SQL <textarea class="mono" rows="5" required spellcheck="false" placeholder=${placeholder} value=${sql} onInput=${(event) => setSql(event.target.value)} onKeyDown=${press}></textarea></label>
      <p class="acts">
        <button type="submit" class="primary" disabled=${ask.busy}>${ask.busy ? "Running…" : "Run"}</button>
        <button type="button" disabled=${ask.busy || !sql.trim()} onClick=${() => ask.run(`EXPLAIN QUERY PLAN ${sql}`)}>Explain</button>
        ${may("deploy") && html`<label class="check"><input type="checkbox" checked=${writes} onChange=${(event) => setWrites(event.target.checked)} /> Let it change data</label>`}
        <span class="soft small"><kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it</span>
      </p>
    </form>
    ${ask.error && html`<${Failed} error=${ask.error} />`}
    <div role="status" class="results">${ask.done?.results.map((result, number) => html`<${Result} key=${`${ask.done.text} ${number}`} result=${result} number=${number + 1} />`)}</div>`;
}

function Result({ result: { columns, rows, read, written, changes }, number }) {
  return html`<section>
    <p class="soft small">${[`${count(rows.length)} ${rows.length === 1 ? "row" : "rows"}`, `${count(read)} read`, `${count(written)} written`, changes ? `${count(changes)} changed` : ""].filter(Boolean).join(", ")}</p>
    ${rows.length > 0 && html`<${More} rows=${rows}>${(some) => html`<div class="table-box" tabindex="0" role="region" aria-label=${`Rows of statement ${number}`}><table class="grid">
      <thead><tr>${columns.map((name) => html`<th scope="col"><${Text} most=${80}>${name}<//></th>`)}</tr></thead>
      <tbody>${some.map((row) => html`<tr>${row.map((value) => html`<td class=${typeof value === "number" ? "number" : value === null ? "soft" : ""}><${Text}>${shownValue(value)}<//></td>`)}</tr>`)}</tbody>
    </table></div>`}<//>`}
  </section>`;
}
