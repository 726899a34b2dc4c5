// The tokens that handlers of an HTMLRewriter receive. A token is valid while its handler runs.
// https://developers.cloudflare.com/workers/runtime-apis/html-rewriter/
import { defineInterface } from "../internal/platform.js";
import { illegalConstructor, requireArguments, toUSVString } from "../internal/webidl.js";
import { toContent } from "./content.js";

const INTERNAL = Symbol("made by the platform");
const INVALID =
  "This content token is no longer valid. Content tokens are only valid during the execution of the relevant content handler.";
const MODIFIED =
  "The attributes of this element have been modified during iteration. You must create a new iterator after modifying attributes.";

/** (Token class, transform, pointer) -> token */
export function createToken(Class, transform, pointer) {
  return new Class(INTERNAL, transform, pointer);
}

/** Ends the life of a token. */
export let endToken;

let pointerOf; // (token) -> its pointer; throws if the token is not valid any more
let transformOf; // (token) -> the running transform
let parserOf; // (token) -> its parser
let insert; // (token, method, content, options) -> token

class Token {
  #transform;
  #pointer;
  #free; // the export that frees it

  constructor(key, transform, pointer, free) {
    if (key !== INTERNAL) illegalConstructor();
    this.#transform = transform;
    this.#pointer = pointer;
    this.#free = free;
  }

  static {
    pointerOf = (token) => {
      const pointer = token.#pointer;
      if (pointer === 0) throw new TypeError(INVALID);
      return pointer;
    };
    transformOf = (token) => token.#transform;
    parserOf = (token) => token.#transform.parser;
    insert = (token, method, given, options) => {
      requireArguments(given.length, 1, method);
      const pointer = pointerOf(token);
      const html = options !== undefined && options !== null && Boolean(options.html);
      const { text, isHtml } = token.#transform.contentFor(toContent(given[0]), html);
      parserOf(token).insert(method, pointer, text, isHtml);
      return token;
    };
    endToken = (token) => {
      const pointer = token.#pointer;
      if (pointer === 0) return;
      token.#pointer = 0;
      token.#transform.parser.call(token.#free, pointer);
    };
  }
}

/** Own properties of tokens must not show the class Token: make `Class` an interface that inherits from Object. */
function define(Class, name) {
  Object.setPrototypeOf(Class.prototype, Object.prototype);
  defineInterface(Class, { name, describe: () => ({}) });
}

const IteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));

class AttributesIterator {
  #element;
  #list;
  #edition;
  #at = 0;

  constructor(key, element, list, edition) {
    if (key !== INTERNAL) illegalConstructor();
    this.#element = element;
    this.#list = list;
    this.#edition = edition;
  }

  next() {
    pointerOf(this.#element);
    if (this.#at >= this.#list.length) return { done: true, value: undefined };
    if (this.#edition !== editionOf(this.#element)) throw new TypeError(MODIFIED);
    const [name, value] = this.#list[this.#at++];
    return { done: false, value: [name, value] };
  }
}
Object.setPrototypeOf(AttributesIterator.prototype, IteratorPrototype);
defineInterface(AttributesIterator, { name: "AttributesIterator" });

let editionOf; // (element) -> how often its attributes were changed

export class Element extends Token {
  #edition = 0;

  constructor(key, transform, pointer) {
    super(key, transform, pointer, "__wbg_element_free");
  }

  get tagName() {
    return parserOf(this).text("element_tag_name", pointerOf(this));
  }

  set tagName(name) {
    parserOf(this).callWithText("element_set_tag_name", pointerOf(this), toUSVString(name));
  }

  get attributes() {
    const list = parserOf(this).object("element_attributes", pointerOf(this));
    return new AttributesIterator(INTERNAL, this, list, this.#edition);
  }

  get removed() {
    return parserOf(this).call("element_removed", pointerOf(this)) !== 0;
  }

  get namespaceURI() {
    return parserOf(this).object("element_namespace_uri", pointerOf(this));
  }

  getAttribute(name) {
    requireArguments(arguments.length, 1, "Element.getAttribute");
    return parserOf(this).object("element_getAttribute", pointerOf(this), toUSVString(name)) ?? null;
  }

  hasAttribute(name) {
    requireArguments(arguments.length, 1, "Element.hasAttribute");
    return parserOf(this).callWithText("element_hasAttribute", pointerOf(this), toUSVString(name)) !== 0;
  }

  setAttribute(name, value) {
    requireArguments(arguments.length, 2, "Element.setAttribute");
    parserOf(this).callWithText("element_setAttribute", pointerOf(this), toUSVString(name), toUSVString(value));
    this.#edition++;
    return this;
  }

  removeAttribute(name) {
    requireArguments(arguments.length, 1, "Element.removeAttribute");
    parserOf(this).callWithText("element_removeAttribute", pointerOf(this), toUSVString(name));
    this.#edition++;
    return this;
  }

  before(content, options = undefined) {
    return insert(this, "element_before", arguments, options);
  }

  after(content, options = undefined) {
    return insert(this, "element_after", arguments, options);
  }

  prepend(content, options = undefined) {
    return insert(this, "element_prepend", arguments, options);
  }

  append(content, options = undefined) {
    return insert(this, "element_append", arguments, options);
  }

  replace(content, options = undefined) {
    return insert(this, "element_replace", arguments, options);
  }

  setInnerContent(content, options = undefined) {
    return insert(this, "element_setInnerContent", arguments, options);
  }

  remove() {
    parserOf(this).call("element_remove", pointerOf(this));
    return this;
  }

  removeAndKeepContent() {
    parserOf(this).call("element_removeAndKeepContent", pointerOf(this));
    return this;
  }

  onEndTag(callback) {
    if (typeof callback !== "function") throw new TypeError("Element.onEndTag: the argument is not a function.");
    const pointer = pointerOf(this);
    parserOf(this).callWithFunction("element_onEndTag", pointer, transformOf(this).handler(EndTag, callback, undefined));
  }

  static {
    editionOf = (element) => element.#edition;
  }
}

export class EndTag extends Token {
  constructor(key, transform, pointer) {
    super(key, transform, pointer, "__wbg_endtag_free");
  }

  get name() {
    return parserOf(this).text("endtag_name", pointerOf(this));
  }

  set name(name) {
    parserOf(this).callWithText("endtag_set_name", pointerOf(this), toUSVString(name));
  }

  before(content, options = undefined) {
    return insert(this, "endtag_before", arguments, options);
  }

  after(content, options = undefined) {
    return insert(this, "endtag_after", arguments, options);
  }

  remove() {
    parserOf(this).call("endtag_remove", pointerOf(this));
    return this;
  }
}

const NOT_TEXT =
  "Replacing HTML content using a ReadableStream or Response object is not implemented. You must provide a string.";

/** The arguments of a method that takes no streams. */
function requireText(given) {
  if (given.length > 0 && typeof toContent(given[0]) !== "string") throw new TypeError(NOT_TEXT);
  return given;
}

export class Comment extends Token {
  constructor(key, transform, pointer) {
    super(key, transform, pointer, "__wbg_comment_free");
  }

  get text() {
    return parserOf(this).text("comment_text", pointerOf(this));
  }

  set text(text) {
    parserOf(this).callWithText("comment_set_text", pointerOf(this), toUSVString(text));
  }

  get removed() {
    return parserOf(this).call("comment_removed", pointerOf(this)) !== 0;
  }

  before(content, options = undefined) {
    return insert(this, "comment_before", requireText(arguments), options);
  }

  after(content, options = undefined) {
    return insert(this, "comment_after", requireText(arguments), options);
  }

  replace(content, options = undefined) {
    return insert(this, "comment_replace", requireText(arguments), options);
  }

  remove() {
    parserOf(this).call("comment_remove", pointerOf(this));
    return this;
  }
}

export class Text extends Token {
  constructor(key, transform, pointer) {
    super(key, transform, pointer, "__wbg_textchunk_free");
  }

  get text() {
    return parserOf(this).text("textchunk_text", pointerOf(this));
  }

  get lastInTextNode() {
    return parserOf(this).call("textchunk_last_in_text_node", pointerOf(this)) !== 0;
  }

  get removed() {
    return parserOf(this).call("textchunk_removed", pointerOf(this)) !== 0;
  }

  before(content, options = undefined) {
    return insert(this, "textchunk_before", arguments, options);
  }

  after(content, options = undefined) {
    return insert(this, "textchunk_after", arguments, options);
  }

  replace(content, options = undefined) {
    return insert(this, "textchunk_replace", arguments, options);
  }

  remove() {
    parserOf(this).call("textchunk_remove", pointerOf(this));
    return this;
  }
}

export class Doctype extends Token {
  constructor(key, transform, pointer) {
    super(key, transform, pointer, "__wbg_doctype_free");
  }

  get name() {
    return parserOf(this).object("doctype_name", pointerOf(this)) ?? null;
  }

  get publicId() {
    return parserOf(this).object("doctype_public_id", pointerOf(this)) ?? null;
  }

  get systemId() {
    return parserOf(this).object("doctype_system_id", pointerOf(this)) ?? null;
  }
}

export class DocumentEnd extends Token {
  constructor(key, transform, pointer) {
    super(key, transform, pointer, "__wbg_documentend_free");
  }

  append(content, options = undefined) {
    return insert(this, "documentend_append", arguments, options);
  }
}

for (const [name, Class] of Object.entries({ Element, EndTag, Comment, Text, Doctype, DocumentEnd })) define(Class, name);
