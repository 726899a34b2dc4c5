// Reads and writes multipart/form-data.
// https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data
// https://www.rfc-editor.org/rfc/rfc7578
//
// The content of a part is not parsed, so there are no nested parts: a part of type multipart is a file like any other.
import { blobBytes, blobType, createBlob } from "./blob.js";
import { File, nameOfFile } from "./file.js";
import { native } from "../internal/native.js";
import { decodeText, decodeTextKeepingMark, encodeText } from "../internal/text.js";

const MOST_PARTS = 10_000;
const MOST_HEADER_BYTES = 16_384; // most bytes of the headers of one part
const MOST_BOUNDARY = 70; // https://www.rfc-editor.org/rfc/rfc2046#section-5.1.1
const NEAR = 64;
const CR = 0x0d;
const LF = 0x0a;
const DASH = 0x2d;
const QUOTE = 0x22;

function malformed(why) {
  return new TypeError(`The body is not valid multipart/form-data: ${why}.`);
}

const ESCAPES = { '"': "%22", "\r": "%0D", "\n": "%0A" };

/** https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data: a name or a file name in quotes. */
function escapeName(name) {
  return name.replace(/[\r\n"]/g, (match) => ESCAPES[match]);
}

function normalizeNewlines(text) {
  return text.replace(/\r\n|\r|\n/g, "\r\n");
}

function makeBoundary() {
  const bytes = new Uint8Array(16);
  native.fillRandom(bytes);
  return `----atoll-form-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart/form-data-encoding-algorithm */
export function serializeMultipart(list) {
  const boundary = makeBoundary();
  const chunks = [];
  for (let i = 0; i < list.length; i += 2) {
    const value = list[i + 1];
    const name = escapeName(normalizeNewlines(list[i]));
    const start = `--${boundary}\r\nContent-Disposition: form-data; name="${name}"`;
    if (typeof value === "string") chunks.push(encodeText(`${start}\r\n\r\n${normalizeNewlines(value)}\r\n`));
    else {
      const type = blobType(value) === "" ? "application/octet-stream" : blobType(value);
      chunks.push(encodeText(`${start}; filename="${escapeName(nameOfFile(value))}"\r\nContent-Type: ${type}\r\n\r\n`));
      chunks.push(blobBytes(value), encodeText("\r\n"));
    }
  }
  chunks.push(encodeText(`--${boundary}--\r\n`));
  const bytes = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return { bytes, type: `multipart/form-data; boundary=${boundary}` };
}

function startsWith(bytes, prefix, at) {
  if (at + prefix.length > bytes.length) return false;
  for (let i = 0; i < prefix.length; i++) if (bytes[at + i] !== prefix[i]) return false;
  return true;
}

// The position of `needle`, which begins with CR; -1 if it is not found.
function find(bytes, needle, start) {
  let at = start;
  for (;;) {
    at = bytes.indexOf(CR, at);
    if (at === -1) return -1;
    // Thousands of CRs may be close together, and a loop over them is faster than a call for each.
    for (const end = Math.min(at + NEAR, bytes.length); at < end; at++) {
      if (bytes[at] === CR && startsWith(bytes, needle, at)) return at;
    }
  }
}

// The state of one parse.
class Parser {
  at = 0;
  #bytes;
  #delimiter; // CR LF - - boundary

  constructor(bytes, boundary) {
    this.#bytes = bytes;
    this.#delimiter = encodeText(`\r\n--${boundary}`);
  }

  // The first delimiter, at the start of the body, without its CR LF.
  first() {
    const line = this.#delimiter.subarray(2);
    if (!startsWith(this.#bytes, line, 0)) throw malformed("it does not begin with the boundary");
    this.at = line.length;
  }

  // After a delimiter: true at the end of the body; otherwise moves to the line break before the headers of a part.
  isLast() {
    const bytes = this.#bytes;
    let { at } = this;
    if (bytes[at] === DASH && bytes[at + 1] === DASH) return true;
    while (bytes[at] === 0x20 || bytes[at] === 0x09) at++;
    if (bytes[at] !== CR || bytes[at + 1] !== LF) throw malformed("a boundary is not followed by a line break");
    this.at = at + 2;
    return false;
  }

  // The headers of a part as [lower-case name, bytes of the value].
  headers() {
    const bytes = this.#bytes;
    const limit = this.at + MOST_HEADER_BYTES;
    const found = [];
    for (;;) {
      const end = bytes.indexOf(CR, this.at);
      if (end > limit || (end === -1 && bytes.length > limit)) {
        throw malformed("the headers of a part are longer than 16 KB");
      }
      if (end === -1 || bytes[end + 1] !== LF) throw malformed("the headers of a part do not end");
      const line = bytes.subarray(this.at, end);
      this.at = end + 2;
      if (line.length === 0) return found;
      const colon = line.indexOf(0x3a);
      if (colon <= 0) throw malformed("a header of a part has no name");
      found.push([decodeText(line.subarray(0, colon)).trim().toLowerCase(), line.subarray(colon + 1)]);
    }
  }

  content() {
    const end = find(this.#bytes, this.#delimiter, this.at);
    if (end === -1) throw malformed("the last part does not end with the boundary");
    const bytes = this.#bytes.subarray(this.at, end);
    this.at = end + this.#delimiter.length;
    return bytes;
  }
}

// A quoted parameter value, from the byte after the opening quote: { value, end }. Decodes percent-escapes as browsers write them.
function quoted(bytes, start) {
  const end = bytes.indexOf(QUOTE, start);
  if (end === -1) throw malformed("a quoted name does not end");
  const text = decodeTextKeepingMark(bytes.subarray(start, end));
  return { value: text.replace(/%0A/gi, "\n").replace(/%0D/gi, "\r").replace(/%22/g, '"'), end: end + 1 };
}

function unquoted(bytes, start) {
  let end = bytes.indexOf(0x3b, start);
  if (end === -1) end = bytes.length;
  return { value: decodeTextKeepingMark(bytes.subarray(start, end)).trim(), end };
}

/** The parameters of a Content-Disposition: Map of lower-case names. */
function parseDisposition(bytes) {
  const parameters = new Map();
  let at = bytes.indexOf(0x3b);
  const kind = decodeText(at === -1 ? bytes : bytes.subarray(0, at)).trim().toLowerCase();
  if (kind !== "form-data") throw malformed("a part is not form-data");
  while (at !== -1 && at < bytes.length) {
    const equals = bytes.indexOf(0x3d, at);
    if (equals === -1) break;
    const name = decodeText(bytes.subarray(at + 1, equals)).trim().toLowerCase();
    const { value, end } = bytes[equals + 1] === QUOTE ? quoted(bytes, equals + 2) : unquoted(bytes, equals + 1);
    if (!parameters.has(name)) parameters.set(name, value);
    at = bytes.indexOf(0x3b, end);
  }
  return parameters;
}

function describePart(headers) {
  let disposition;
  let type = "text/plain";
  for (const [name, value] of headers) {
    if (name === "content-disposition") disposition ??= parseDisposition(value);
    else if (name === "content-type") type = native.decodeLatin1(value).trim();
  }
  const name = disposition?.get("name");
  if (name === undefined) throw malformed("a part has no name");
  return { name, filename: disposition.get("filename"), type };
}

/** The entries of a body, as a flat list. Throws TypeError if the body is malformed or exceeds a limit. */
export function parseMultipart(bytes, boundary) {
  if (boundary === undefined || boundary === "") throw malformed("its Content-Type names no boundary");
  if (boundary.length > MOST_BOUNDARY) throw malformed("its boundary is longer than 70 characters");
  const list = [];
  const parser = new Parser(bytes, boundary);
  parser.first();
  while (!parser.isLast()) {
    if (list.length >= 2 * MOST_PARTS) throw malformed("it has more than 10,000 parts");
    const { name, filename, type } = describePart(parser.headers());
    const content = parser.content();
    if (filename === undefined) list.push(name, decodeTextKeepingMark(content));
    else list.push(name, new File([createBlob(content.slice(), "")], filename, { type }));
  }
  return list;
}
