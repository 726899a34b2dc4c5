// https://nodejs.org/api/util.html#class-utilmimetype
import { isToken } from "../fetch/header_list.js";
import { parseMimeType, serializeMimeType } from "../fetch/mime_type.js";
import { codedError } from "./errors.js";

function invalid(what, text) {
  return codedError(TypeError, "ERR_INVALID_MIME_SYNTAX", `The MIME syntax for a ${what} in "${text}" is invalid`);
}

function requireToken(value, what) {
  const text = `${value}`;
  if (!isToken(text)) throw invalid(what, text);
  return text;
}

let wrap; // (Map) -> MIMEParams

export class MIMEParams {
  #map = new Map();

  get(name) {
    return this.#map.get(`${name}`) ?? null;
  }

  has(name) {
    return this.#map.has(`${name}`);
  }

  set(name, value) {
    const text = `${value}`;
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) throw invalid("parameter value", text);
    this.#map.set(requireToken(name, "parameter name"), text);
  }

  delete(name) {
    this.#map.delete(`${name}`);
  }

  entries() {
    return this.#map.entries();
  }

  keys() {
    return this.#map.keys();
  }

  values() {
    return this.#map.values();
  }

  [Symbol.iterator]() {
    return this.#map.entries();
  }

  toString() {
    return serializeMimeType({ essence: "", parameters: this.#map }).slice(1);
  }

  toJSON() {
    return this.toString();
  }

  static {
    wrap = (map) => {
      const params = new MIMEParams();
      params.#map = map;
      return params;
    };
  }
}

export class MIMEType {
  #type;
  #subtype;
  #params;

  constructor(input) {
    const parsed = parseMimeType(`${input}`);
    if (parsed === null) throw invalid("type", `${input}`);
    this.#type = parsed.type;
    this.#subtype = parsed.subtype;
    this.#params = wrap(parsed.parameters);
  }

  get type() {
    return this.#type;
  }

  set type(value) {
    this.#type = requireToken(value, "type").toLowerCase();
  }

  get subtype() {
    return this.#subtype;
  }

  set subtype(value) {
    this.#subtype = requireToken(value, "subtype").toLowerCase();
  }

  get essence() {
    return `${this.#type}/${this.#subtype}`;
  }

  get params() {
    return this.#params;
  }

  toString() {
    const params = `${this.#params}`;
    return params === "" ? this.essence : `${this.essence};${params}`;
  }

  toJSON() {
    return this.toString();
  }
}
