// JSON with numbers that JavaScript would round: they stay as they were written. Pure.
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
const MARK = "\u0000exact:";

/** The value of a JSON text; numbers that would not come out as they went in are marked strings. */
export const parseExact = (text) =>
  JSON.parse(text.replace(TOKENS, (token) => (token[0] === '"' || String(Number(token)) === token ? token : JSON.stringify(MARK + token))));

/** The JSON text of such a value. */
export const exactText = (value, indent = 0) => JSON.stringify(value, null, indent).replaceAll(/"\\u0000exact:([^"]*)"/g, "$1");
