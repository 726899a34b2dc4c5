// Line breaks of an inspected value: entries on one line if they fit, otherwise in columns or one per line.

const MOST_COLUMNS = 15;
const COLUMNS_PER_LEVEL = 4; // columns per level that may share a line
const HEIGHT = 2.5; // height of a character in units of its width, so that a table is about square
const SLACK = 10; // room left at the end of a line

// Colours take no room.
function widthOf(run, text) {
  return run.paint === undefined ? text.length : bare(text).length;
}

function bare(text) {
  return text.replace(/\x1b\[\d+m/g, "");
}

/** An entry that is already formatted. */
export function leaf(text) {
  return { text };
}

// Formats many short items as a table: numbers aligned to the right, texts to the left.
function inColumns(run, texts, isNumeric) {
  const hasMore = texts.at(-1).startsWith("... ");
  const items = hasMore ? texts.slice(0, -1) : texts;
  const longest = items.reduce((most, text) => Math.max(most, widthOf(run, text)), 0);
  const total = items.reduce((sum, text) => sum + widthOf(run, text) + 2, 0);
  const widest = longest + 2;
  const indent = run.path.length * 2;
  // No columns if one long item would make all of them wide.
  if (widest * 3 + indent >= run.width || (longest > 6 && total / widest <= 5)) return texts;
  // If the lengths differ a lot, the longest items count less.
  const typical = Math.max(widest - 3 - Math.sqrt(widest - total / texts.length), 1);
  const columns = Math.min(
    MOST_COLUMNS,
    run.compact * COLUMNS_PER_LEVEL,
    Math.floor((run.width - indent) / widest),
    Math.round(Math.sqrt(HEIGHT * typical * items.length) / typical),
  );
  if (columns <= 1) return texts;
  const widths = new Array(columns).fill(0);
  items.forEach((text, i) => {
    widths[i % columns] = Math.max(widths[i % columns], widthOf(run, text));
  });
  const rows = [];
  for (let start = 0; start < items.length; start += columns) {
    const row = items.slice(start, start + columns);
    const cells = row.map((text, i) => {
      const room = " ".repeat(widths[i] - widthOf(run, text));
      if (isNumeric) return room + text;
      return i === row.length - 1 ? text : `${text},${room}`;
    });
    rows.push(cells.join(isNumeric ? ", " : " "));
  }
  return hasMore ? [...rows, texts.at(-1)] : rows;
}

export function sortByText(entries) {
  return entries.sort((a, b) => (a.text < b.text ? -1 : 1));
}

/** Entries as { text } between braces. `run`: the inspection, whose path leads to this value. */
export function group(run, prefix, [open, close], entries) {
  const start = prefix === "" ? open : `${prefix} ${open}`;
  if (entries.length === 0) return leaf(`${start}${close}`);
  if (run.sorted && open === "{") sortByText(entries);
  let texts = entries.map((entry) => entry.text);
  let isTable = false;
  if (open === "[" && texts.length > 6 && run.compact >= 1 && run.compact !== Infinity) {
    const items = inColumns(run, texts, entries.every((entry) => entry.isNumeric !== false && /^[-\d.]/.test(bare(entry.text))));
    isTable = items !== texts;
    texts = items;
  }
  const levels = run.latest - run.path.length;
  const indent = run.path.length * 2;
  const length = texts.reduce((sum, text) => sum + widthOf(run, text) + 2, indent + widthOf(run, start) + SLACK);
  const fits = !isTable && levels < run.compact && length <= run.width && !start.includes("\n") && !texts.some((text) => text.includes("\n"));
  if (fits) return leaf(`${start} ${texts.join(", ")} ${close}`);
  const body = texts.map((text) => `  ${text.replaceAll("\n", "\n  ")}`).join(",\n");
  return leaf(`${start}\n${body}\n${close}`);
}
