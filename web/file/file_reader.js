// https://w3c.github.io/FileAPI/#APIASynch
import { DOMException } from "../dom/exception.js";
import { EventTarget, fireEvent, HandlerSlot } from "../dom/event_target.js";
import { ProgressEvent } from "../dom/progress_event.js";
import { TextDecoder } from "../encoding/text_decoder.js";
import { parseMimeType } from "../fetch/mime_type.js";
import { native } from "../internal/native.js";
import { defineConstants, defineInterface } from "../internal/platform.js";
import { illegalConstructor, requireArguments, toDOMString, toUnsigned } from "../internal/webidl.js";
import { startTimer } from "../timers.js";
import { blobBytes, blobType, isBlob } from "./blob.js";

const EMPTY = 0;
const LOADING = 1;
const DONE = 2;
const HANDLERS = ["loadstart", "progress", "load", "abort", "error", "loadend"];

function decoderFor(label) {
  try {
    return new TextDecoder(label);
  } catch {
    return null;
  }
}

/** https://encoding.spec.whatwg.org/#bom-sniff */
function markedEncoding([first, second, third]) {
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  return first === 0xff && second === 0xfe ? "utf-16le" : null;
}

/**
 * https://w3c.github.io/FileAPI/#blob-package-data, for text: the encoding of the byte order mark, or the given one, or that of the
 * type, or UTF-8.
 */
function packageText(bytes, type, label) {
  const marked = markedEncoding(bytes);
  if (marked !== null) return new TextDecoder(marked).decode(bytes);
  const decoder = decoderFor(label) ?? decoderFor(parseMimeType(type)?.parameters.get("charset") ?? "utf-8");
  return (decoder ?? new TextDecoder()).decode(bytes);
}

function packageBinaryString(bytes) {
  const parts = [];
  for (let at = 0; at < bytes.length; at += 8192) parts.push(String.fromCharCode(...bytes.subarray(at, at + 8192)));
  return parts.join("");
}

function packageDataURL(bytes, type) {
  return `data:${type === "" ? "application/octet-stream" : type};base64,${native.btoa(packageBinaryString(bytes))}`;
}

export class FileReader extends EventTarget {
  #state = EMPTY;
  #result = null;
  #error = null;
  #reading = 0; // number of the current read; events of earlier ones are dropped
  #handlers = null;

  readAsArrayBuffer(blob) {
    this.#read(arguments.length, blob, "readAsArrayBuffer", (bytes) => bytes.slice().buffer);
  }

  readAsBinaryString(blob) {
    this.#read(arguments.length, blob, "readAsBinaryString", packageBinaryString);
  }

  readAsText(blob, encoding = undefined) {
    const label = encoding === undefined ? "" : toDOMString(encoding);
    this.#read(arguments.length, blob, "readAsText", (bytes, type) => packageText(bytes, type, label));
  }

  readAsDataURL(blob) {
    this.#read(arguments.length, blob, "readAsDataURL", packageDataURL);
  }

  /** https://w3c.github.io/FileAPI/#readOperation */
  #read(count, blob, method, pack) {
    requireArguments(count, 1, `FileReader.${method}`);
    if (!isBlob(blob)) throw new TypeError(`FileReader.${method}: the argument is not a Blob.`);
    // Step 1.
    if (this.#state === LOADING) throw new DOMException("The reader is already reading.", "InvalidStateError");
    // Steps 2 to 4.
    this.#state = LOADING;
    this.#result = this.#error = null;
    const reading = ++this.#reading;
    // Steps 5 to 10: the bytes are in memory, so a read takes three tasks.
    const bytes = blobBytes(blob);
    const total = bytes.length;
    const task = (steps) => startTimer(() => this.#state === LOADING && reading === this.#reading && steps(), 0);
    task(() => this.#fire("loadstart", 0, total));
    if (total > 0) task(() => this.#fire("progress", total, total));
    task(() => {
      this.#state = DONE;
      try {
        this.#result = pack(bytes, blobType(blob));
      } catch (error) {
        this.#error = new DOMException(error.message, "NotReadableError");
      }
      this.#fire(this.#error === null ? "load" : "error", total, total);
      // A separate task, so that the promises of a `load` listener settle first, as in browsers.
      startTimer(() => this.#state !== LOADING && reading === this.#reading && this.#fire("loadend", total, total), 0);
    });
  }

  /** https://w3c.github.io/FileAPI/#dfn-abort */
  abort() {
    const wasLoading = this.#state === LOADING;
    this.#result = null;
    if (!wasLoading) return;
    this.#state = DONE;
    this.#fire("abort", 0, 0);
    if (this.#state !== LOADING) this.#fire("loadend", 0, 0);
  }

  get readyState() {
    return this.#state;
  }

  get result() {
    return this.#result;
  }

  get error() {
    return this.#error;
  }

  #fire(type, loaded, total) {
    fireEvent(this, new ProgressEvent(type, { lengthComputable: total > 0, loaded, total }));
  }

  static {
    for (const type of HANDLERS) {
      const accessors = {
        get [`on${type}`]() {
          return this.#handlers?.get(type)?.get() ?? null;
        },
        set [`on${type}`](handler) {
          this.#handlers ??= new Map();
          if (!this.#handlers.has(type)) this.#handlers.set(type, new HandlerSlot(type));
          this.#handlers.get(type).set(this, handler);
        },
      };
      Object.defineProperties(FileReader.prototype, Object.getOwnPropertyDescriptors(accessors));
    }
  }
}

defineInterface(FileReader, { name: "FileReader" });
defineConstants(FileReader, { EMPTY, LOADING, DONE });

/** https://w3c.github.io/FileAPI/#filelist-section: files chosen in a form. A worker never has one. */
export class FileList {
  #files = [];

  constructor() {
    throw illegalConstructor();
  }

  get length() {
    return this.#files.length;
  }

  item(index) {
    const files = this.#files;
    requireArguments(arguments.length, 1, "FileList.item");
    return files[toUnsigned(index, 32)] ?? null;
  }
}

defineInterface(FileList);
// https://webidl.spec.whatwg.org/#define-the-iteration-methods: an interface with indexed items uses the iterator of Array.
Object.defineProperty(FileList.prototype, Symbol.iterator, {
  value: Array.prototype[Symbol.iterator], writable: true, enumerable: false, configurable: true,
});
