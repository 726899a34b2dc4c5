// Runs every case and returns the results as text, so that two runtimes can be compared: `{ name: outcome }`.

function show(value) {
  if (value === undefined) return "undefined";
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "symbol" || typeof value === "function") return String(value);
  if (Object.is(value, -0)) return "-0";
  if (typeof value === "number") return String(value);
  if (ArrayBuffer.isView(value)) return `${value.constructor.name} ${Array.from(value).join(",")}`;
  return JSON.stringify(value, (key, inner) => (typeof inner === "bigint" || typeof inner === "undefined" ? show(inner) : inner));
}

export async function outcomes(cases) {
  const found = {};
  for (const [name, run] of Object.entries(cases)) {
    try {
      found[name] = show(await run());
    } catch (error) {
      found[name] = `throws ${error?.name} ${error?.code ?? ""} ${error?.message}`;
    }
  }
  return found;
}

/** `{ "label: arg": … }` of one function over many arguments; each argument is an array of arguments. */
export function table(label, call, ...rows) {
  return Object.fromEntries(rows.map((row, index) => [`${label} #${index}`, () => call(...row)]));
}
