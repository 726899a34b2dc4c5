// One document on its way through the parser: from the body of a response to the body of another.
//
// The parser gets the next piece when the output of the piece before was read. A content that is a stream, or long, is not copied
// into the parser: a random mark stands for it, and is replaced in the output.
import { Utf8Decoder } from "../encoding/decoders.js";
import { captureStores, withStores } from "../internal/async_context.js";
import { native } from "../internal/native.js";
import { encodeText } from "../internal/text.js";
import { readNext } from "../streams/streams.js";
import { textPieces } from "./content.js";
import { HtmlParser } from "./parser.js";
import { createToken, endToken } from "./tokens.js";

const { apply } = Reflect;
const SLICE = 32_768; // bytes that are parsed at once
const LONG = 16_384; // characters of a content that are copied into the parser
const HELD = 65_536; // bytes of output that wait for the reader

export class Transform {
  parser = HtmlParser.take();
  #stores = captureStores();
  #out = []; // Uint8Arrays, and contents that follow them
  #marks = null; // mark -> { content, html }
  #salt = "";
  #charset;
  #decoder = new Utf8Decoder(false, true); // of the output, if it is not UTF-8
  #reader;
  #controller = null;
  #wanted = null; // called when the output has room again
  #cancelled = null; // { reason }

  constructor(stream, registered, charset, esiIncludeIsVoid) {
    this.#charset = charset;
    this.parser.begin((bytes) => this.#receive(bytes), esiIncludeIsVoid);
    for (const { selector, owner, handlers } of registered) {
      const wrapped = {};
      for (const [name, Class, handler] of handlers) wrapped[name] = this.handler(Class, handler, owner);
      if (selector === null) this.parser.onDocument(wrapped);
      else this.parser.on(selector, wrapped);
    }
    this.#reader = stream.getReader();
  }

  /** The underlying source of the output. */
  source() {
    return {
      type: "bytes",
      start: (controller) => {
        this.#controller = controller;
        this.#pump();
      },
      pull: () => {
        this.#wanted?.();
        this.#wanted = null;
      },
      cancel: (reason) => {
        this.#cancelled = { reason };
        this.#wanted?.();
      },
    };
  }

  /** A function for the parser: calls a handler with a token, which is valid until the handler is done. */
  handler(Class, handler, owner) {
    return (pointer) => {
      const token = createToken(Class, this, pointer);
      let result;
      try {
        result = withStores(this.#stores, () => apply(handler, owner, [token]));
      } catch (error) {
        endToken(token);
        throw error;
      }
      if (typeof result?.then !== "function") {
        endToken(token);
        return undefined;
      }
      return this.#settled(token, result);
    };
  }

  async #settled(token, result) {
    await result;
    endToken(token); // not after a rejection: the parser is dropped then
  }

  /** What to give to the parser for a content. */
  contentFor(content, html) {
    if (typeof content === "string" && content.length <= LONG) return { text: content, isHtml: html };
    this.#marks ??= new Map();
    if (this.#salt === "") this.#salt = native.randomUUID();
    const mark = `\u0002${this.#salt}${String(this.#marks.size).padStart(8, "0")}\u0003`;
    this.#marks.set(mark, { content, html });
    return { text: mark, isHtml: true };
  }

  #receive(bytes) {
    if (bytes.length === 0) return;
    if (this.#marks === null) this.#out.push(bytes);
    else this.#splitAtMarks(bytes);
  }

  #splitAtMarks(bytes) {
    const start = encodeText(`\u0002${this.#salt}`);
    const length = start.length + 9;
    let from = 0;
    for (let at = bytes.indexOf(2); at >= 0 && at + length <= bytes.length; at = bytes.indexOf(2, at + 1)) {
      if (!start.every((byte, index) => bytes[at + index] === byte)) continue;
      const inserted = this.#marks.get(String.fromCharCode(...bytes.subarray(at, at + length)));
      if (inserted === undefined) continue;
      if (at > from) this.#out.push(bytes.subarray(from, at));
      this.#out.push(inserted);
      from = at + length;
    }
    if (from < bytes.length) this.#out.push(bytes.subarray(from));
  }

  async #pump() {
    try {
      for (let bytes; (bytes = await readNext(this.#reader)) !== null; ) {
        if (this.#cancelled !== null) break;
        await this.#parse(this.#charset.decode(bytes));
      }
      if (this.#cancelled !== null) {
        this.#reader.cancel(this.#cancelled.reason).catch(() => {});
        return;
      }
      await this.#parse(this.#charset.end());
      await this.parser.end();
      await this.#flush();
      this.parser.giveBack();
      if (this.#cancelled === null) this.#close();
    } catch (error) {
      this.#fail(error);
    }
  }

  #close() {
    const controller = this.#controller;
    controller.close();
    controller.byobRequest?.respond(0); // a read that waits for the end
  }

  #fail(error) {
    if (this.#cancelled === null) this.#controller.error(error);
    this.#reader.cancel(error).catch(() => {});
  }

  async #parse(bytes) {
    for (let at = 0; at < bytes.length && this.#cancelled === null; at += SLICE) {
      await this.parser.write(bytes.subarray(at, at + SLICE));
      await this.#flush();
    }
  }

  async #flush() {
    const out = this.#out;
    this.#out = [];
    let joined = [];
    for (const item of out) {
      if (item instanceof Uint8Array) {
        joined.push(item);
        continue;
      }
      await this.#send(joinBytes(joined));
      joined = [];
      for await (const text of textPieces(item.content, item.html)) {
        if (this.#cancelled !== null) return;
        await this.#enqueue(this.#charset.encode(text));
      }
    }
    await this.#send(joinBytes(joined));
  }

  #send(bytes) {
    return this.#enqueue(this.#charset.encodeBytes(bytes, (utf8) => this.#decoder.write(utf8)));
  }

  async #enqueue(bytes) {
    if (bytes.length === 0 || this.#cancelled !== null) return;
    this.#controller.enqueue(bytes);
    if (this.#controller.desiredSize <= 0) await new Promise((resolve) => (this.#wanted = resolve));
  }
}

Transform.HELD = HELD;

function joinBytes(pieces) {
  if (pieces.length === 1) return pieces[0];
  let length = 0;
  for (const piece of pieces) length += piece.length;
  const joined = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}
