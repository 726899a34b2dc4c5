// https://encoding.spec.whatwg.org/#interface-textdecoderstream, https://encoding.spec.whatwg.org/#interface-textencoderstream
import { TextDecoder } from "./text_decoder.js";
import { defineInterface } from "../internal/platform.js";
import { encodeText } from "../internal/text.js";
import { isArrayBuffer, toDOMString } from "../internal/webidl.js";
import { TransformStream } from "../streams/streams.js";

const decode = TextDecoder.prototype.decode;

function toInput(chunk) {
  // decode() accepts undefined as empty input, but a chunk must not be undefined.
  const isBytes = ArrayBuffer.isView(chunk) || isArrayBuffer(chunk) || (typeof chunk === "object" && chunk !== null);
  if (!isBytes) throw new TypeError("TextDecoderStream: the chunk is neither an ArrayBuffer nor a view.");
  return chunk;
}

export class TextDecoderStream {
  #decoder;
  #transform;

  /** https://encoding.spec.whatwg.org/#dom-textdecoderstream */
  constructor(label = "utf-8", options = undefined) {
    const decoder = new TextDecoder(label, options);
    this.#decoder = decoder;
    this.#transform = new TransformStream({
      // https://encoding.spec.whatwg.org/#decode-and-enqueue-a-chunk
      transform(chunk, controller) {
        const text = decode.call(decoder, toInput(chunk), { stream: true });
        if (text !== "") controller.enqueue(text);
      },
      // https://encoding.spec.whatwg.org/#flush-and-enqueue
      flush(controller) {
        const text = decode.call(decoder);
        if (text !== "") controller.enqueue(text);
      },
    });
  }

  get encoding() {
    return this.#decoder.encoding;
  }

  get fatal() {
    return this.#decoder.fatal;
  }

  get ignoreBOM() {
    return this.#decoder.ignoreBOM;
  }

  get readable() {
    return this.#transform.readable;
  }

  get writable() {
    return this.#transform.writable;
  }
}

function isLead(code) {
  return code >= 0xd800 && code <= 0xdbff;
}

export class TextEncoderStream {
  #transform;

  /** https://encoding.spec.whatwg.org/#dom-textencoderstream */
  constructor() {
    let lead = ""; // a lead surrogate at the end of a chunk, whose trail surrogate may begin the next one
    this.#transform = new TransformStream({
      // https://encoding.spec.whatwg.org/#encode-and-enqueue-a-chunk
      transform(chunk, controller) {
        const text = lead + toDOMString(chunk);
        if (text === "") return;
        lead = isLead(text.charCodeAt(text.length - 1)) ? text.slice(-1) : "";
        const whole = lead === "" ? text : text.slice(0, -1);
        if (whole !== "") controller.enqueue(encodeText(whole));
      },
      // https://encoding.spec.whatwg.org/#encode-and-flush
      flush(controller) {
        if (lead !== "") controller.enqueue(new Uint8Array([0xef, 0xbf, 0xbd]));
      },
    });
  }

  get encoding() {
    this.#transform;
    return "utf-8";
  }

  get readable() {
    return this.#transform.readable;
  }

  get writable() {
    return this.#transform.writable;
  }
}

defineInterface(TextDecoderStream);
defineInterface(TextEncoderStream);
