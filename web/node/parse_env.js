// Files of variables, as process.loadEnvFile() and util.parseEnv() read them.
// https://nodejs.org/api/environment_variables.html#dotenv

const QUOTES = "'\"`";

/** `{ NAME: value }` of the lines `NAME=value`. Values may be in quotes and then have several lines; `#` begins a comment. */
export function parseEnv(content) {
  const text = content.replaceAll("\r\n", "\n");
  const found = {};
  let position = 0;
  const endOfLine = (from) => {
    const end = text.indexOf("\n", from);
    return end === -1 ? text.length : end;
  };
  while (position < text.length) {
    const end = endOfLine(position);
    const equals = text.indexOf("=", position);
    const isComment = text.slice(position, end).trimStart().startsWith("#");
    if (isComment || equals === -1 || equals >= end) {
      position = end + 1;
      continue;
    }
    const name = text.slice(position, equals).trim().replace(/^export /, "").trim();
    let start = equals + 1;
    while (start < end && (text[start] === " " || text[start] === "\t")) start++;
    const quote = text[start] ?? "";
    const closing = quote !== "" && QUOTES.includes(quote) ? text.indexOf(quote, start + 1) : -1;
    if (closing !== -1) {
      const value = text.slice(start + 1, closing);
      found[name] = quote === '"' ? value.replaceAll("\\n", "\n") : value;
      position = endOfLine(closing) + 1;
    } else {
      const line = text.slice(start, end);
      const comment = line.indexOf("#");
      found[name] = (comment === -1 ? line : line.slice(0, comment)).trim();
      position = end + 1;
    }
  }
  delete found[""];
  return found;
}
