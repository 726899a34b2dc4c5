// The headers of a message that was received.
import { Headers } from "../fetch/headers.js";
import { decodeText } from "../internal/text.js";

const MAX_HEAD = 128 << 10; // bytes, as Python reads them

/** Where the headers end. */
function endOf(bytes) {
  const length = Math.min(bytes.length, MAX_HEAD);
  for (let at = 0; at < length; at++) {
    if (bytes[at] === 10 && (bytes[at + 1] === 10 || (bytes[at + 1] === 13 && bytes[at + 2] === 10))) return at;
  }
  return length;
}

export function headersOf(bytes) {
  const headers = new Headers();
  const lines = [];
  for (const line of decodeText(bytes.subarray(0, endOf(bytes))).split("\n")) {
    const text = line.endsWith("\r") ? line.slice(0, -1) : line;
    if (/^[ \t]/.test(text) && lines.length > 0) lines[lines.length - 1] += text;
    else lines.push(text);
  }
  for (const line of lines) {
    const colon = line.indexOf(":");
    try {
      if (colon > 0) headers.append(line.slice(0, colon).trim(), line.slice(colon + 1).trim());
    } catch {
      // Not a header of HTTP: it is in `raw` alone.
    }
  }
  return headers;
}

export function toHeaders(value) {
  return new Headers(value);
}
