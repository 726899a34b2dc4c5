// Incremental decoders. Each has write(bytes) and end(bytes), and is not used after end.
import { native } from "../internal/native.js";

const BYTE_ORDER_MARK = "\uFEFF";

function concat(first, second) {
  if (first.length === 0) return second;
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

// The number of bytes at the end that begin an incomplete but valid UTF-8 sequence.
function incompleteTail(bytes) {
  const { length } = bytes;
  for (let back = 1; back <= 3 && back <= length; back++) {
    const byte = bytes[length - back];
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    if (needed <= back || byte > 0xf4 || byte < 0xc2) return 0;
    if (back === 1) return 1;
    // The second byte decides whether the sequence can be well-formed.
    const second = bytes[length - back + 1];
    const low = byte === 0xe0 ? 0xa0 : byte === 0xf0 ? 0x90 : 0x80;
    const high = byte === 0xed ? 0x9f : byte === 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high ? back : 0;
  }
  return 0;
}

/** https://encoding.spec.whatwg.org/#utf-8-decoder */
export class Utf8Decoder {
  #pending = new Uint8Array(0);
  #fatal;
  #keepMark;

  constructor(fatal, ignoreBOM) {
    this.#fatal = fatal;
    this.#keepMark = ignoreBOM;
  }

  write(bytes) {
    const all = concat(this.#pending, bytes);
    const tail = incompleteTail(all);
    const text = this.#decode(tail === 0 ? all : all.subarray(0, all.length - tail));
    this.#pending = tail === 0 ? new Uint8Array(0) : all.slice(all.length - tail);
    return text;
  }

  end(bytes) {
    return this.#decode(concat(this.#pending, bytes));
  }

  #decode(bytes) {
    if (bytes.length === 0) return "";
    const text = native.decodeUtf8(bytes, this.#fatal, this.#keepMark);
    this.#keepMark = true; // only the first character can be a byte order mark
    return text;
  }
}

/** https://encoding.spec.whatwg.org/#shared-utf-16-decoder */
export class Utf16Decoder {
  #pending = new Uint8Array(0); // an odd byte
  #lead = ""; // a lead surrogate whose trail surrogate may follow
  #bigEndian;
  #fatal;
  #keepMark;

  constructor(bigEndian, fatal, ignoreBOM) {
    this.#bigEndian = bigEndian;
    this.#fatal = fatal;
    this.#keepMark = ignoreBOM;
  }

  write(bytes) {
    const all = concat(this.#pending, bytes);
    const odd = all.length % 2;
    this.#pending = odd === 0 ? new Uint8Array(0) : all.slice(-1);
    let text = this.#lead + native.decodeUtf16(all, this.#bigEndian);
    const last = text.charCodeAt(text.length - 1);
    this.#lead = last >= 0xd800 && last <= 0xdbff ? text.at(-1) : "";
    if (this.#lead !== "") text = text.slice(0, -1);
    return this.#finish(text);
  }

  end(bytes) {
    let text = this.write(bytes);
    if (this.#lead !== "" || this.#pending.length > 0) text += this.#finish("\ud800");
    return text;
  }

  #finish(text) {
    if (this.#fatal && !text.isWellFormed()) throw new TypeError("Failed to decode input.");
    if (text === "") return text;
    const marked = !this.#keepMark && text.startsWith(BYTE_ORDER_MARK);
    this.#keepMark = true;
    return (marked ? text.slice(1) : text).toWellFormed();
  }
}

const PIECE = 1 << 20; // bytes decoded in one step, so that decoding can be interrupted

/** https://encoding.spec.whatwg.org/#legacy-single-byte-encodings and the multi-byte ones, implemented in C++. */
export class LegacyDecoder {
  #encoding; // its number in C++
  #fatal;
  #state = new Uint8Array(8);

  constructor(name, fatal) {
    // https://encoding.spec.whatwg.org/#iso-8859-8-i differs in display order only.
    this.#encoding = native.legacyEncoding(name === "iso-8859-8-i" ? "iso-8859-8" : name);
    this.#fatal = fatal;
  }

  write(bytes) {
    return this.#decode(bytes, false);
  }

  end(bytes) {
    return this.#decode(bytes, true);
  }

  #decode(bytes, flush) {
    let text = "";
    for (let at = 0; at === 0 || at < bytes.length; at += PIECE) {
      const piece = bytes.subarray(at, at + PIECE);
      const isLast = at + PIECE >= bytes.length;
      text += native.decodeLegacy(this.#encoding, piece, this.#state, this.#fatal, flush && isLast);
    }
    return text;
  }
}
