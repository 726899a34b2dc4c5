// https://nodejs.org/api/string_decoder.html
import { Buffer } from "./buffer.js";
import { decode, requireEncoding } from "./buffer_encodings.js";
import { codedError, invalidArgument } from "./errors.js";

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
  if (bytes.length % 2 === 1) return 1;
  const high = bytes[bytes.length - 1];
  return bytes.length >= 2 && high >= 0xd8 && high <= 0xdb ? 2 : 0;
}

const INCOMPLETE = {
  utf8: incompleteUtf8,
  utf16le: incompleteUtf16,
  base64: (bytes) => bytes.length % 3,
  base64url: (bytes) => bytes.length % 3,
};

const rest = Symbol("bytes of an incomplete character");
const NONE = new Uint8Array(0);

/** https://nodejs.org/api/string_decoder.html#class-stringdecoder. A function, because older code calls it on objects of its own. */
export function StringDecoder(encoding = undefined) {
  this.encoding = requireEncoding(encoding);
  Object.defineProperty(this, rest, { value: NONE, writable: true });
}

/** The text of all complete characters. */
StringDecoder.prototype.write = function (chunk) {
  if (typeof chunk === "string") return chunk;
  if (!ArrayBuffer.isView(chunk)) throw invalidArgument("buf", "an instance of Buffer, TypedArray, or DataView", chunk);
  if (this[rest] === undefined) throw codedError(TypeError, "ERR_INVALID_THIS", 'Value of "this" must be of type StringDecoder');
  const added = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  const bytes = this[rest].length === 0 ? added : Buffer.concat([this[rest], added]);
  // A lead surrogate that waits stays until both bytes of its partner are here.
  const isHalf = this.encoding === "utf16le" && this[rest].length >= 2 && bytes.length === 3;
  const kept = isHalf ? 3 : (INCOMPLETE[this.encoding]?.(bytes) ?? 0);
  if (kept === 0 && this[rest].length === 0) return decode(bytes, this.encoding);
  this[rest] = bytes.slice(bytes.length - kept);
  return decode(bytes.subarray(0, bytes.length - kept), this.encoding);
};

/** The remaining text. An incomplete character is replaced. */
StringDecoder.prototype.end = function (chunk = undefined) {
  const text = chunk === undefined ? "" : this.write(chunk);
  const left = this[rest];
  this[rest] = NONE;
  return text + (left.length === 0 ? "" : decode(left, this.encoding));
};

StringDecoder.prototype.text = function (chunk, offset) {
  this[rest] = NONE;
  return this.write(chunk.subarray(offset));
};

// The bytes that the character of the remaining bytes has.
function wantedBytes(decoder) {
  const left = decoder[rest];
  if (left.length === 0) return 0;
  if (decoder.encoding === "utf16le") return left.length >= 2 || (left[1] >= 0xd8 && left[1] <= 0xdb) ? 4 : 2;
  if (decoder.encoding !== "utf8") return 3;
  return left[0] >= 0xf0 ? 4 : left[0] >= 0xe0 ? 3 : 2;
}

Object.defineProperties(StringDecoder.prototype, {
  lastChar: {
    get() {
      return Buffer.concat([this[rest]], 4);
    },
    configurable: true,
    enumerable: true,
  },
  lastNeed: {
    get() {
      return wantedBytes(this) - this[rest].length;
    },
    configurable: true,
    enumerable: true,
  },
  lastTotal: {
    get() {
      return wantedBytes(this);
    },
    configurable: true,
    enumerable: true,
  },
});
