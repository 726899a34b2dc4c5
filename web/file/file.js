// https://w3c.github.io/FileAPI/#file-section
import { Blob, blobType } from "./blob.js";
import { wallClock } from "../internal/clock.js";
import { defineInterface } from "../internal/platform.js";
import { toDictionary, toLongLong, toUSVString, wrongArgument } from "../internal/webidl.js";

export let isFile;
/** The name of a File, independent of what a worker did to the getter. */
export let nameOfFile;
export let lastModifiedOfFile;
let cloneFile;

export class File extends Blob {
  #name;
  #lastModified;

  /** https://w3c.github.io/FileAPI/#file-constructor */
  constructor(fileBits, fileName, options = undefined) {
    if (arguments.length < 2) throw wrongArgument("File constructor", 1, "string");
    if (fileBits === undefined) throw new TypeError("File constructor: the parts are not a sequence.");
    super(fileBits, options);
    this.#name = toUSVString(fileName);
    const { lastModified } = toDictionary(options, "File constructor");
    this.#lastModified = lastModified === undefined ? wallClock() : toLongLong(lastModified);
  }

  get name() {
    return this.#name;
  }

  get lastModified() {
    return this.#lastModified;
  }

  static {
    isFile = (value) => typeof value === "object" && value !== null && #name in value;
    nameOfFile = (file) => file.#name;
    lastModifiedOfFile = (file) => file.#lastModified;
    cloneFile = (file) => new File([file], file.#name, { type: blobType(file), lastModified: file.#lastModified });
  }
}

defineInterface(File, {
  name: "File",
  describe: ({ size, type, name, lastModified }) => ({ size, type, name, lastModified }),
  clone: cloneFile,
});
