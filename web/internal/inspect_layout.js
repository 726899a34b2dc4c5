// Where the lines of an inspected value break: entries on one line if they fit, else in columns or one below the other.

const MOST_COLUMNS = 12;
const SLACK = 10; // room that is left at the end of a line

/** Something already written: `text`. */
export function leaf(text) {
  return { text };
}

// Many short items: a table whose numbers are aligned to the right and whose texts to the left.
function inColumns(run, texts, isNumeric) {
  const hasMore = texts.at(-1).startsWith("... ");
  const items = hasMore ? texts.slice(0, -1) : texts;
  const longest = items.reduce((most, text) => Math.max(most, text.length), 0);
  const total = items.reduce((sum, text) => sum + text.length + 2, 0);
  const columns = Math.min(
    MOST_COLUMNS,
    Math.floor((run.width - run.path.length * 2) / (longest + 2)),
    Math.ceil(Math.sqrt(2.5 * items.length)),
  );
  // Not worth it if one long item makes all columns wide.
  if (columns < 3 || (longest > 6 && total / (longest + 2) <= 5)) return texts;
  const widths = new Array(columns).fill(0);
  items.forEach((text, i) => {
    widths[i % columns] = Math.max(widths[i % columns], text.length);
  });
  const rows = [];
  for (let start = 0; start < items.length; start += columns) {
    const row = items.slice(start, start + columns);
    const cells = row.map((text, i) => {
      if (isNumeric) return text.padStart(widths[i]);
      return i === row.length - 1 ? text : `${text},`.padEnd(widths[i] + 1);
    });
    rows.push(cells.join(isNumeric ? ", " : " "));
  }
  return hasMore ? [...rows, texts.at(-1)] : rows;
}

/** `entries` as { text } between braces. `run`: the inspection; its path is what is around this value. */
export function group(run, prefix, [open, close], entries) {
  const start = prefix === "" ? open : `${prefix} ${open}`;
  if (entries.length === 0) return leaf(`${start}${close}`);
  let texts = entries.map((entry) => entry.text);
  let isTable = false;
  if (open === "[" && texts.length > 6 && run.latest <= run.path.length) {
    const items = inColumns(run, texts, entries.every((entry) => entry.isNumeric !== false && /^[-\d.]/.test(entry.text)));
    isTable = items !== texts;
    texts = items;
  }
  const levels = run.latest - run.path.length;
  const indent = run.path.length * 2;
  const length = texts.reduce((sum, text) => sum + text.length + 2, indent + start.length + SLACK);
  const fits = !isTable && levels < run.compact && length <= run.width && !start.includes("\n") && !texts.some((text) => text.includes("\n"));
  if (fits) return leaf(`${start} ${texts.join(", ")} ${close}`);
  const body = texts.map((text) => `  ${text.replaceAll("\n", "\n  ")}`).join(",\n");
  return leaf(`${start}\n${body}\n${close}`);
}
