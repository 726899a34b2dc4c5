// https://encoding.spec.whatwg.org/#interface-textencoder
import { native } from "../internal/native.js";
import { defineInterface } from "../internal/platform.js";
import { encodeText } from "../internal/text.js";
import { requireArguments, wrongArgument } from "../internal/webidl.js";

const counts = new Uint32Array(2); // units read and bytes written by native.encodeInto

export class TextEncoder {
  #isTextEncoder = true;

  get encoding() {
    this.#isTextEncoder;
    return "utf-8";
  }

  /** https://encoding.spec.whatwg.org/#dom-textencoder-encode */
  encode(input = "") {
    this.#isTextEncoder;
    return encodeText(`${input}`);
  }

  /** https://encoding.spec.whatwg.org/#dom-textencoder-encodeinto */
  encodeInto(source, destination) {
    this.#isTextEncoder;
    requireArguments(arguments.length, 2, "TextEncoder.encodeInto");
    const string = `${source}`;
    if (!(destination instanceof Uint8Array)) {
      throw wrongArgument("TextEncoder.encodeInto", 1, "Uint8Array");
    }
    native.encodeInto(string, destination, counts);
    return { read: counts[0], written: counts[1] };
  }
}

defineInterface(TextEncoder);
