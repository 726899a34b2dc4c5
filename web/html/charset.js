// Documents that are not in UTF-8. The parser reads and writes UTF-8, so they are converted on the way in and out.
import { LegacyDecoder } from "../encoding/decoders.js";
import { getEncoding } from "../encoding/labels.js";
import { extractMimeType } from "../fetch/mime_type.js";
import { encodeText } from "../internal/text.js";

const UNKNOWN = "Parser error: Unknown character encoding has been provided.";
const NOT_ASCII = "Parser error: Expected ASCII-compatible encoding.";
const MULTI_BYTE = ["gbk", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr"];

const UTF_8 = { decode: (bytes) => bytes, end: () => new Uint8Array(0), encode: encodeText, encodeBytes: (bytes) => bytes };

/** The conversion for a Content-Type: `decode` and `end` give UTF-8, `encode` and `encodeBytes` take text and UTF-8. */
export function charsetOf(contentType) {
  const label = contentType === null ? undefined : extractMimeType(contentType)?.parameters.get("charset");
  if (label === undefined) return UTF_8;
  const name = getEncoding(label);
  if (name === undefined) throw new TypeError(UNKNOWN);
  if (name === "utf-8") return UTF_8;
  if (name.startsWith("utf-16") || name === "iso-2022-jp" || name === "replacement") throw new TypeError(NOT_ASCII);
  if (MULTI_BYTE.includes(name)) {
    throw new TypeError(`HTMLRewriter cannot write the character encoding ${name} yet: convert the document to UTF-8.`);
  }
  return singleByte(name);
}

function singleByte(name) {
  const all = new Uint8Array(128).map((_, index) => index + 128);
  const upper = new LegacyDecoder(name, false).end(all);
  const byteOf = new Map();
  for (let index = 0; index < 128; index++) if (upper[index] !== "\ufffd") byteOf.set(upper.charCodeAt(index), index + 128);
  const decoder = new LegacyDecoder(name, false);
  const encode = (text) => {
    const out = [];
    for (const character of text) {
      const code = character.codePointAt(0);
      const byte = code < 128 ? code : byteOf.get(code);
      if (byte !== undefined) out.push(byte);
      else for (const digit of `&#${code};`) out.push(digit.charCodeAt(0)); // as in https://encoding.spec.whatwg.org/#encode
    }
    return new Uint8Array(out);
  };
  return {
    decode: (bytes) => encodeText(decoder.write(bytes)),
    end: () => encodeText(decoder.end(new Uint8Array(0))),
    encode,
    encodeBytes: (bytes, decodeUtf8) => encode(decodeUtf8(bytes)),
  };
}
