// Bytes of tenants, and what they can be shown as. Pure.
const TEXT_MARKS = 0.02; // part of control characters above which UTF-8 counts as binary
const PICTURES = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]],
  ["image/webp", [0x52, 0x49, 0x46, 0x46, null, null, null, null, 0x57, 0x45, 0x42, 0x50]],
  ["image/avif", [null, null, null, null, 0x66, 0x74, 0x79, 0x70, 0x61, 0x76, 0x69, 0x66]],
];

/** The type of a picture by its first bytes, never by its name; "" for anything else. SVG is a document, and is shown as text. */
export const pictureType = (bytes) => PICTURES.find(([, marks]) => marks.every((mark, place) => mark === null || bytes[place] === mark))?.[0] ?? "";

/** The text of UTF-8, with its byte order mark if there is one; null if the bytes are not UTF-8. `isCut`: the last character may be half. */
export function textOf(bytes, isCut = false) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isCut });
  } catch {
    return null;
  }
}

export function looksBinary(text) {
  const marks = text.slice(0, 4_096).match(/[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/g)?.length ?? 0;
  return marks > Math.min(text.length, 4_096) * TEXT_MARKS;
}

export function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON with line ends and indents. Only whitespace changes: numbers too large for JavaScript and repeated names stay as they are. */
export function indented(json) {
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, 100))}`;
  return json.replace(/"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{}[\],:]|\s+/g, (token) => {
    if (token[0] === '"') return token;
    if (/^\s/.test(token)) return "";
    if (token.length > 1) return token.replace(/\s/g, "");
    if (token === ":") return ": ";
    if (token === ",") return `,${line()}`;
    depth += "{[".includes(token) ? 1 : -1;
    return "{[".includes(token) ? token + line() : line() + token;
  });
}

/** Lines of 16 bytes: their place, their values, and what of them is ASCII. */
export function hexOf(bytes, most = 4_096) {
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, most); at += 16) {
    const some = [...bytes.subarray(at, Math.min(at + 16, most))];
    const hex = some.map((each) => each.toString(16).padStart(2, "0")).join(" ");
    const ascii = some.map((each) => (each >= 32 && each < 127 ? String.fromCharCode(each) : ".")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${hex.padEnd(47)}  ${ascii}`);
  }
  return lines.join("\n");
}

/** How the lines of a text end: a form has only "\n", so a text with both kinds cannot be edited in one. */
export function lineEnd(text) {
  if (!text.includes("\r")) return "\n";
  return /\r(?!\n)|(?<!\r)\n/.test(text) ? null : "\r\n";
}
