// https://encoding.spec.whatwg.org/#interface-textdecoder
import { lazy } from "../internal/lazy.js";
import { LegacyDecoder, Utf16Decoder, Utf8Decoder } from "./decoders.js";
import { native } from "../internal/native.js";
import { defineInterface } from "../internal/platform.js";
import { bytesOf, isArrayBuffer, toDictionary, toDOMString, wrongArgument } from "../internal/webidl.js";

const NOTHING = new Uint8Array(0);

function toInputBytes(input) {
  if (ArrayBuffer.isView(input) || isArrayBuffer(input)) return bytesOf(input);
  if (Object.prototype.toString.call(input) === "[object SharedArrayBuffer]") return bytesOf(input);
  throw wrongArgument("TextDecoder.decode", 0, "Array");
}

function createDecoder(encoding, fatal, ignoreBOM) {
  if (encoding === "utf-8") return new Utf8Decoder(fatal, ignoreBOM);
  if (encoding === "utf-16le" || encoding === "utf-16be") {
    return new Utf16Decoder(encoding === "utf-16be", fatal, ignoreBOM);
  }
  return new LegacyDecoder(encoding, fatal);
}

export class TextDecoder {
  #encoding;
  #fatal;
  #ignoreBOM;
  #decoder = null; // created on first use with `stream`, and for every encoding but UTF-8

  /** https://encoding.spec.whatwg.org/#dom-textdecoder */
  constructor(label = "utf-8", options = undefined) {
    const text = toDOMString(label);
    const encoding = text === "utf-8" || text === "utf8" ? "utf-8" : lazy("encoding/labels.js").getEncoding(text);
    if (encoding === undefined) throw new RangeError(`"${label}" is not a valid encoding.`);
    const { fatal = false, ignoreBOM = false } = toDictionary(options, "TextDecoder");
    this.#encoding = encoding;
    this.#fatal = !!fatal;
    this.#ignoreBOM = !!ignoreBOM;
  }

  get encoding() {
    return this.#encoding;
  }

  get fatal() {
    return this.#fatal;
  }

  get ignoreBOM() {
    return this.#ignoreBOM;
  }

  /** https://encoding.spec.whatwg.org/#dom-textdecoder-decode */
  decode(input = undefined, options = undefined) {
    const bytes = input === undefined ? (this.#encoding, NOTHING) : toInputBytes(input);
    const stream = options !== undefined && !!toDictionary(options, "TextDecoder.decode").stream;
    if (this.#encoding === "utf-8" && !stream && this.#decoder === null) {
      return native.decodeUtf8(bytes, this.#fatal, this.#ignoreBOM);
    }
    this.#decoder ??= createDecoder(this.#encoding, this.#fatal, this.#ignoreBOM);
    if (stream) return this.#decoder.write(bytes);
    const decoder = this.#decoder;
    this.#decoder = null;
    return decoder.end(bytes);
  }
}

defineInterface(TextDecoder);
