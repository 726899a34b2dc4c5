// https://nodejs.org/api/readline.html: lines of a stream. There is no terminal: without an input, an interface is silent.
import { codedError } from "./errors.js";
import { EventEmitter, on } from "./events.js";
import { StringDecoder } from "./string_decoder.js";

const LINE_END = /\r\n|[\n\r\u2028\u2029]/;

export class Interface extends EventEmitter {
  terminal = false;
  line = "";
  cursor = 0;
  closed = false;
  #prompt;
  #question = null; // called with the next line
  #rest = "";
  #listeners = {}; // of the input, by event
  #iterator = null;
  #decoder = new StringDecoder("utf8");

  constructor(input = undefined, output = undefined) {
    super();
    const options = input !== undefined && input !== null && typeof input.on !== "function" ? input : { input, output };
    this.input = options.input ?? undefined;
    this.output = options.output ?? undefined;
    this.crlfDelay = Math.max(100, options.crlfDelay ?? 100);
    this.history = options.history ?? [];
    this.#prompt = options.prompt ?? "";
    if (this.input === undefined) return;
    this.#listeners = {
      data: (chunk) => this.#take(typeof chunk === "string" ? chunk : this.#decoder.write(chunk)),
      end: () => this.#end(),
      error: (error) => this.emit("error", error),
    };
    for (const [event, listener] of Object.entries(this.#listeners)) this.input.on(event, listener);
    options.signal?.addEventListener("abort", () => this.close(), { once: true });
    this.input.resume?.();
  }

  #take(text) {
    const lines = (this.#rest + text).split(LINE_END);
    // "\r" may be the first half of a line end.
    const held = text.endsWith("\r") ? `${lines.splice(-2, 1)[0]}\r` : "";
    this.#rest = held + lines.pop();
    for (const line of lines) this.#emitLine(line);
  }

  #end() {
    const last = (this.#rest + this.#decoder.end()).replace(/\r$/, "");
    if (last !== "" || this.#rest.endsWith("\r")) this.#emitLine(last);
    this.#rest = "";
    this.close();
  }

  #emitLine(line) {
    if (this.closed) return;
    const question = this.#question;
    this.#question = null;
    if (question !== null) question(line);
    else this.emit("line", line);
  }

  getPrompt() {
    return this.#prompt;
  }

  setPrompt(prompt) {
    this.#prompt = `${prompt}`;
  }

  prompt() {
    this.output?.write?.(this.#prompt);
  }

  question(query, options, callback = options) {
    if (typeof callback !== "function") return;
    if (this.input === undefined) return callback("");
    if (this.closed) throw codedError(Error, "ERR_USE_AFTER_CLOSE", "readline was closed");
    this.output?.write?.(query);
    this.#question = callback;
  }

  pause() {
    this.input?.pause?.();
    this.emit("pause");
    return this;
  }

  resume() {
    this.input?.resume?.();
    this.emit("resume");
    return this;
  }

  close() {
    if (this.closed) return;
    this.input?.pause?.();
    this.closed = true;
    for (const [event, listener] of Object.entries(this.#listeners)) this.input.removeListener(event, listener);
    this.emit("close");
  }

  write(data) {
    if (this.input !== undefined && data !== undefined && data !== null) this.#take(`${data}`);
  }

  getCursorPos() {
    return { rows: 0, cols: 0 };
  }

  [Symbol.dispose]() {
    this.close();
  }

  // All loops over an interface share its lines.
  [Symbol.asyncIterator]() {
    this.#iterator ??= this.#lines();
    return this.#iterator;
  }

  async *#lines() {
    if (this.input === undefined) return;
    try {
      for await (const [line] of on(this, "line", { close: ["close"], highWaterMark: 1024 })) yield line;
    } finally {
      this.close();
    }
  }
}

class PromisesInterface extends Interface {
  question(query, options = undefined) {
    return new Promise((resolve, reject) => {
      const { signal } = options ?? {};
      if (signal?.aborted) reject(signal.reason);
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      super.question(query, resolve);
    });
  }
}

/** https://nodejs.org/api/readline.html#class-readlinepromisesreadline */
class Readline {
  clearLine() {
    return this;
  }

  clearScreenDown() {
    return this;
  }

  cursorTo() {
    return this;
  }

  moveCursor() {
    return this;
  }

  rollback() {
    return this;
  }

  async commit() {}
}

export const promises = {
  Interface: PromisesInterface,
  Readline,
  createInterface: (...args) => new PromisesInterface(...args),
};

export function createInterface(...args) {
  return new Interface(...args);
}

export const clearLine = () => false;
export const clearScreenDown = () => false;
export const cursorTo = () => false;
export const moveCursor = () => false;
export const emitKeypressEvents = () => {};
