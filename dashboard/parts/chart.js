// Charts over time. uPlot draws them, fetched when the first one is shown. Each has the same numbers as a table, which
// screen readers and people who cannot tell the colours read.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html } from "../core/html.js";

let plot = null; // the module, once it is here

/** `lines`: [{ label, values, colour, fill }], `times`: seconds, `marks`: [{ at, label }], `format`: value -> text. */
export function Chart({ title, times, lines, marks = [], format, limit = null, note = "" }) {
  const box = useRef(null);
  const [problem, setProblem] = useState("");
  const [asTable, setAsTable] = useState(false);
  const data = useMemo(() => [times, ...lines.map((line) => line.values)], [times, lines]);
  const isEmpty = !lines.some((line) => line.values.some((value) => value !== null && value !== 0));

  useEffect(() => {
    if (asTable) return undefined;
    let drawn = null;
    let gone = false;
    (async () => {
      try {
        plot ??= import("./plot.js");
        const { draw } = await plot;
        if (!gone) drawn = draw(box.current, { data, lines, marks, format, limit });
      } catch {
        plot = null;
        setProblem("The chart could not be loaded; the table has its numbers.");
      }
    })();
    return () => {
      gone = true;
      drawn?.();
    };
  }, [data, asTable, marks, limit]);

  return html`<figure class="chart">
    <figcaption>
      <h2 class="h3">${title}</h2>
      <span class="legend">${lines.map((line) => html`<span><i class=${`key ${line.colour}`}></i>${line.label}</span>`)}</span>
      <button type="button" class="quiet" aria-pressed=${asTable} onClick=${() => setAsTable(!asTable)}>Table</button>
    </figcaption>
    ${problem && html`<p class="soft">${problem}</p>`}
    ${asTable
      ? html`<${Numbers} times=${times} lines=${lines} format=${format} />`
      : html`<div class="plot" ref=${box} aria-hidden="true"></div>
          ${isEmpty && html`<p class="nothing soft">Nothing in this time</p>`}`}
    ${note && html`<p class="soft small">${note}</p>`}
  </figure>`;
}

function Numbers({ times, lines, format }) {
  const rows = times.map((time, number) => [time, ...lines.map((line) => line.values[number])]);
  const told = rows.filter(([, ...values]) => values.some((value) => value)).reverse();
  return html`<div class="table-box short" tabindex="0" role="region" aria-label="Numbers of the chart">
    <table>
      <thead><tr><th scope="col">Time</th>${lines.map((line) => html`<th scope="col" class="number">${line.label}</th>`)}</tr></thead>
      <tbody>
        ${told.map(([time, ...values]) => html`<tr>
          <td>${new Date(time * 1000).toLocaleString("en-GB")}</td>
          ${values.map((value) => html`<td class="number">${format(value)}</td>`)}
        </tr>`)}
      </tbody>
    </table>
  </div>`;
}
