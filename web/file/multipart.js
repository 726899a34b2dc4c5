// Reads and writes multipart/form-data.
// https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data
// https://www.rfc-editor.org/rfc/rfc7578
//
// The content of a part is not parsed, so there are no nested parts: a part of type multipart is a file like any other.
import { blobBytes, blobType, createBlob } from "./blob.js";
import { File, nameOfFile } from "./file.js";
import { native } from "../internal/native.js";
import { decodeText, decodeTextKeepingMark, encodeText } from "../internal/text.js";
import { isOn } from "../worker/compatibility.js";

const MOST_PARTS = 10_000;
const MOST_HEADER_BYTES = 16_384; // most bytes of the headers of one part
const MOST_BOUNDARY = 70; // https://www.rfc-editor.org/rfc/rfc2046#section-5.1.1
const NEAR = 64;
const CR = 0x0d;
const LF = 0x0a;
const DASH = 0x2d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function malformed(why) {
  return new TypeError(why);
}

const ESCAPES = { '"': "%22", "\r": "%0D", "\n": "%0A" };

/** https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data: a name or a file name in quotes. */
function escapeName(name) {
  // Readers that take \\" for a quote would not find the end of the name.
  if (name.endsWith("\\")) throw new TypeError("Name or filename can't end with backslash");
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

// The position of `needle`; -1 if it is not found.
function find(bytes, needle, start) {
  const [first] = needle;
  let at = start;
  for (;;) {
    at = bytes.indexOf(first, at);
    if (at === -1) return -1;
    // Thousands of these bytes may be close together, and a loop over them is faster than a call for each.
    for (const end = Math.min(at + NEAR, bytes.length); at < end; at++) {
      if (bytes[at] === first && startsWith(bytes, needle, at)) return at;
    }
  }
}

// The state of one parse. Lines may end in LF alone, and text before the first boundary is skipped, as at Cloudflare.
class Parser {
  at = 0;
  #bytes;
  #delimiter; // LF - - boundary

  constructor(bytes, boundary) {
    this.#bytes = bytes;
    this.#delimiter = encodeText(`\n--${boundary}`);
  }

  // The first delimiter, which needs no line break before it.
  first() {
    const line = this.#delimiter.subarray(1);
    const at = find(this.#bytes, line, 0);
    if (at === -1) throw malformed("No initial boundary string (or you have a truncated message).");
    this.at = at + line.length;
  }

  // After a delimiter: true at the end of the body; otherwise moves to the line break before the headers of a part.
  isLast() {
    const bytes = this.#bytes;
    let { at } = this;
    if (bytes[at] === DASH && bytes[at + 1] === DASH) return true;
    if (bytes[at] === CR) at++;
    if (bytes[at] !== LF) throw malformed("Boundary string was not succeeded by CRLF, LF, or '--'.");
    this.at = at + 1;
    return false;
  }

  // The headers of a part as [lower-case name, bytes of the value].
  headers() {
    const bytes = this.#bytes;
    const limit = this.at + MOST_HEADER_BYTES;
    const found = [];
    for (;;) {
      const end = bytes.indexOf(LF, this.at);
      if (end > limit || (end === -1 && bytes.length > limit)) {
        throw malformed("The headers of a part of the multipart message are longer than 16 KB.");
      }
      if (end === -1) throw malformed("No multipart message header termination found.");
      const line = bytes.subarray(this.at, bytes[end - 1] === CR && end > this.at ? end - 1 : end);
      this.at = end + 1;
      if (line.length === 0 && found.length > 0) return found;
      const colon = line.indexOf(0x3a);
      if (colon <= 0) throw malformed("No multipart message header termination found.");
      found.push([decodeText(line.subarray(0, colon)).trim().toLowerCase(), line.subarray(colon + 1)]);
    }
  }

  content() {
    const end = find(this.#bytes, this.#delimiter, this.at);
    if (end === -1) throw malformed("No subsequent boundary string after multipart message.");
    const bytes = this.#bytes.subarray(this.at, end > this.at && this.#bytes[end - 1] === CR ? end - 1 : end);
    this.at = end + this.#delimiter.length;
    return bytes;
  }
}

// Whether the quote at `at` follows an odd number of backslashes.
function isEscaped(bytes, at, start) {
  let before = at;
  while (before > start && bytes[before - 1] === BACKSLASH) before--;
  return (at - before) % 2 === 1;
}

// A quoted parameter value, from the byte after the opening quote: { value, end }. Decodes percent-escapes as browsers write them.
function quoted(bytes, start) {
  let end = bytes.indexOf(QUOTE, start);
  while (end > start && isEscaped(bytes, end, start)) end = bytes.indexOf(QUOTE, end + 1);
  if (end === -1) throw malformed("A quoted parameter of a Content-Disposition header in a FormData part does not end.");
  const text = decodeTextKeepingMark(bytes.subarray(start, end));
  const plain = text.includes("\\") ? text.replace(/\\(["\\])/g, "$1") : text;
  return { value: plain.replace(/%0A/gi, "\n").replace(/%0D/gi, "\r").replace(/%22/g, '"'), end: end + 1 };
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
  if (kind !== "form-data") {
    throw malformed(
      'Content-Disposition header for FormData part must have the value "form-data", possibly followed by parameters. ' +
        `Got: "${kind.slice(0, 100)}"`,
    );
  }
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
  if (disposition === undefined) throw malformed("No valid Content-Disposition header found in FormData part.");
  if (name === undefined) throw malformed("Content-Disposition header in FormData part is missing a name.");
  return { name, filename: disposition.get("filename"), type };
}

/** The entries of a body, as a flat list. Throws TypeError if the body is malformed or exceeds a limit. */
export function parseMultipart(bytes, boundary) {
  if (boundary === undefined || boundary === "") {
    throw malformed(
      "No boundary string in Content-Type header. The multipart/form-data MIME type requires a boundary parameter, e.g. " +
        "'Content-Type: multipart/form-data; boundary=\"abcd\"'. See RFC 7578, section 4.",
    );
  }
  if (boundary.length > MOST_BOUNDARY) throw malformed("The boundary of the multipart message is longer than 70 characters.");
  const keepsFiles = isOn("formdata_parser_supports_files");
  const list = [];
  const parser = new Parser(bytes, boundary);
  parser.first();
  while (!parser.isLast()) {
    if (list.length >= 2 * MOST_PARTS) throw malformed("The multipart message has more than 10,000 parts.");
    const { name, filename, type } = describePart(parser.headers());
    const content = parser.content();
    if (filename === undefined || !keepsFiles) list.push(name, decodeTextKeepingMark(content));
    else list.push(name, new File([createBlob(content.slice(), "")], filename, { type }));
  }
  return list;
}
