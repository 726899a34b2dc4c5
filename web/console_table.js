// https://console.spec.whatwg.org/#table
import { inspect } from "./internal/inspect.js";

const MOST_ROWS = 1000;

function isObject(value) {
  return typeof value === "object" && value !== null;
}

function rowsOf(data) {
  if (data instanceof Map) return { label: "(iteration index)", rows: [...data].map(([Key, Values], i) => [i, { Key, Values }]) };
  if (data instanceof Set) return { label: "(iteration index)", rows: [...data].map((value, i) => [i, value]) };
  return { label: "(index)", rows: Object.entries(data) };
}

function drawLine(widths, [left, middle, right]) {
  return left + widths.map((width) => "─".repeat(width + 2)).join(middle) + right;
}

function drawRow(widths, cells) {
  return `│ ${cells.map((cell, i) => cell.padEnd(widths[i])).join(" │ ")} │`;
}

function draw(head, rows) {
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i].length)));
  return [
    drawLine(widths, "┌┬┐"),
    drawRow(widths, head),
    drawLine(widths, "├┼┤"),
    ...rows.map((row) => drawRow(widths, row)),
    drawLine(widths, "└┴┘"),
  ].join("\n");
}

/** The data as a table, or null if it is not tabular. `properties`: the columns to show, by default all. */
export function formatTable(data, properties = undefined) {
  if (!isObject(data)) return null;
  const { label, rows } = rowsOf(data);
  const shown = rows.slice(0, MOST_ROWS);
  const columns = new Set(properties);
  let hasValues = false;
  for (const [, value] of shown) {
    if (!isObject(value)) hasValues = true;
    else if (properties === undefined) for (const key of Object.keys(value)) columns.add(key);
  }
  const cell = (value) => inspect(value, { depth: 0 }).replaceAll("\n", " ");
  const table = shown.map(([index, value]) => {
    const cells = [...columns].map((key) => (isObject(value) && Object.hasOwn(value, key) ? cell(value[key]) : ""));
    return [`${index}`, ...cells, ...(hasValues ? [isObject(value) ? "" : cell(value)] : [])];
  });
  return draw([label, ...columns, ...(hasValues ? ["Values"] : [])], table);
}
