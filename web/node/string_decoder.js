// https://nodejs.org/api/string_decoder.html
import { Buffer } from "./buffer.js";
import { decode, encode, requireEncoding } from "./buffer_encodings.js";
import { invalidArgument } from "./errors.js";

// The number of bytes at the end that begin an incomplete character.
function incompleteUtf8(bytes) {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back];
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf0 && byte <= 0xf4 ? 4 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte >= 0xc2 && byte < 0xe0 ? 2 : 1;
    return needed > back ? back : 0;
  }
  return 0;
}

function incompleteUtf16(bytes) {
  const odd = bytes.length % 2;
  const high = bytes[bytes.length - 1 - odd];
  const isLead = bytes.length >= 2 + odd && high >= 0xd8 && high <= 0xdb;
  return odd + (isLead ? 2 : 0);
}

const INCOMPLETE = {
  utf8: incompleteUtf8,
  utf16le: incompleteUtf16,
  base64: (bytes) => bytes.length % 3,
  base64url: (bytes) => bytes.length % 3,
};

export class StringDecoder {
  #rest = new Uint8Array(0);

  constructor(encoding = undefined) {
    this.encoding = requireEncoding(encoding);
  }

  /** The text of all complete characters. */
  write(chunk) {
    if (typeof chunk === "string") return chunk;
    if (!ArrayBuffer.isView(chunk)) throw invalidArgument("buf", "an instance of Buffer, TypedArray, or DataView", chunk);
    const bytes = Buffer.concat([this.#rest, new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)]);
    const kept = INCOMPLETE[this.encoding]?.(bytes) ?? 0;
    this.#rest = bytes.subarray(bytes.length - kept);
    return decode(bytes.subarray(0, bytes.length - kept), this.encoding);
  }

  /** The remaining text. An incomplete character is replaced. */
  end(chunk = undefined) {
    const text = chunk === undefined ? "" : this.write(chunk);
    const rest = this.#rest;
    this.#rest = new Uint8Array(0);
    return text + (rest.length === 0 ? "" : decode(rest, this.encoding));
  }

  text(chunk, offset) {
    return this.write(chunk.subarray(offset));
  }

  get lastNeed() {
    return this.#rest.length === 0 ? 0 : encode("\u{10ffff}", this.encoding).length - this.#rest.length;
  }

  get lastTotal() {
    return this.#rest.length;
  }
}
