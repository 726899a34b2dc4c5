// https://xhr.spec.whatwg.org/#interface-formdata
import { blobType, isBlob } from "./blob.js";
import { File, isFile, lastModifiedOfFile } from "./file.js";
import { definePairs } from "../internal/pair_iterator.js";
import { defineInterface } from "../internal/platform.js";
import { requireArguments, toUSVString } from "../internal/webidl.js";

/** The flat list of names and values (strings and Files) of a FormData; undefined for any other value. */
export let entryList;
export let isFormData;
/** (flat list) -> FormData that shares the list */
export let createFormData;

/** https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#create-an-entry: the value of an entry. */
function toEntryValue(args, where) {
  const [, value, filename] = args;
  if (!isBlob(value)) {
    if (args.length > 2) throw new TypeError(`${where}: the value is not a Blob, so there can be no file name.`);
    return toUSVString(value);
  }
  if (filename === undefined && isFile(value)) return value;
  const name = filename === undefined ? "blob" : toUSVString(filename);
  const lastModified = isFile(value) ? lastModifiedOfFile(value) : undefined;
  return new File([value], name, { type: blobType(value), lastModified });
}

export class FormData {
  #list = [];

  /** https://xhr.spec.whatwg.org/#dom-formdata, without form elements. */
  constructor(form = undefined) {
    if (form !== undefined) throw new TypeError("FormData constructor: form elements do not exist in a worker.");
  }

  /** https://xhr.spec.whatwg.org/#dom-formdata-append */
  append(name, ...rest) {
    requireArguments(arguments.length, 2, "FormData.append");
    const list = this.#list;
    const key = toUSVString(name);
    list.push(key, toEntryValue([key, ...rest], "FormData.append"));
  }

  /** https://xhr.spec.whatwg.org/#dom-formdata-delete */
  delete(name) {
    requireArguments(arguments.length, 1, "FormData.delete");
    const list = this.#list;
    removeFrom(list, toUSVString(name), 0);
  }

  /** https://xhr.spec.whatwg.org/#dom-formdata-get */
  get(name) {
    requireArguments(arguments.length, 1, "FormData.get");
    const list = this.#list;
    const at = indexOfName(list, toUSVString(name));
    return at === -1 ? null : list[at + 1];
  }

  /** https://xhr.spec.whatwg.org/#dom-formdata-getall */
  getAll(name) {
    requireArguments(arguments.length, 1, "FormData.getAll");
    const list = this.#list;
    const key = toUSVString(name);
    return list.filter((_, index) => index % 2 === 1 && list[index - 1] === key);
  }

  /** https://xhr.spec.whatwg.org/#dom-formdata-has */
  has(name) {
    requireArguments(arguments.length, 1, "FormData.has");
    const list = this.#list;
    return indexOfName(list, toUSVString(name)) !== -1;
  }

  /** https://xhr.spec.whatwg.org/#dom-formdata-set */
  set(name, ...rest) {
    requireArguments(arguments.length, 2, "FormData.set");
    const list = this.#list;
    const key = toUSVString(name);
    const value = toEntryValue([key, ...rest], "FormData.set");
    const at = indexOfName(list, key);
    if (at === -1) {
      list.push(key, value);
      return;
    }
    list[at + 1] = value;
    removeFrom(list, key, at + 2);
  }

  static {
    isFormData = (value) => typeof value === "object" && value !== null && #list in value;
    entryList = (value) => (isFormData(value) ? value.#list : undefined);
    createFormData = (list) => {
      const form = new FormData();
      form.#list = list;
      return form;
    };
  }
}

function indexOfName(list, name) {
  for (let i = 0; i < list.length; i += 2) if (list[i] === name) return i;
  return -1;
}

function removeFrom(list, name, start) {
  let kept = start;
  for (let i = start; i < list.length; i += 2) {
    if (list[i] === name) continue;
    list[kept++] = list[i];
    list[kept++] = list[i + 1];
  }
  list.length = kept;
}

function requireList(form) {
  const list = entryList(form);
  if (list === undefined) throw new TypeError("Illegal invocation: the object is not a FormData.");
  return list;
}

definePairs(FormData, "FormData", requireList);
// https://webidl.spec.whatwg.org/#js-operations: `length` is the number of required arguments.
Object.defineProperty(FormData.prototype.append, "length", { value: 2, configurable: true });
Object.defineProperty(FormData.prototype.set, "length", { value: 2, configurable: true });
defineInterface(FormData, { name: "FormData", describe: (form) => [...form] });
