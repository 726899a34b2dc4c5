// https://developers.cloudflare.com/workers/runtime-apis/html-rewriter/
//
// An HTMLRewriter keeps selectors and handlers. Each transform has a parser of its own (transform.js).
import { isResponse } from "../fetch/outgoing.js";
import { Response } from "../fetch/response.js";
import { defineInterface } from "../internal/platform.js";
import { requireArguments, toUSVString } from "../internal/webidl.js";
import { ReadableStream } from "../streams/streams.js";
import { isOn } from "../worker/compatibility.js";
import { charsetOf } from "./charset.js";
import { HtmlParser } from "./parser.js";
import { Comment, Doctype, DocumentEnd, Element, Text } from "./tokens.js";
import { Transform } from "./transform.js";

const OF_ELEMENTS = { element: Element, comments: Comment, text: Text };
const OF_DOCUMENTS = { doctype: Doctype, comments: Comment, text: Text, end: DocumentEnd };

/** The handlers of an object, with the class of their tokens. They are read once. */
function toHandlers(object, classes, type, where) {
  if ((typeof object !== "object" && typeof object !== "function") || object === null) {
    throw new TypeError(`${where}: the handlers are not an object.`);
  }
  const handlers = [];
  for (const [name, Class] of Object.entries(classes)) {
    const handler = object[name];
    if (handler === undefined) continue;
    if (typeof handler !== "function") {
      throw new TypeError(
        `Incorrect type for the '${name}' field on '${type}': the provided value is not of type 'function'.`,
      );
    }
    handlers.push([name, Class, handler]);
  }
  return handlers;
}

/** Throws TypeError if a selector is invalid. */
function checkSelector(selector) {
  const parser = HtmlParser.take();
  parser.begin(() => {}, true);
  parser.on(selector, {});
  parser.giveBack();
}

export class HTMLRewriter {
  #registered = []; // { selector, owner, handlers }; no selector: for the document

  on(selector, handlers) {
    requireArguments(arguments.length, 2, "HTMLRewriter.on", "string", "ElementContentHandlers");
    const text = toUSVString(selector);
    const read = toHandlers(handlers, OF_ELEMENTS, "ElementContentHandlers", "HTMLRewriter.on");
    checkSelector(text);
    this.#registered.push({ selector: text, owner: handlers, handlers: read });
    return this;
  }

  onDocument(handlers) {
    requireArguments(arguments.length, 1, "HTMLRewriter.onDocument");
    const read = toHandlers(handlers, OF_DOCUMENTS, "DocumentContentHandlers", "HTMLRewriter.onDocument");
    this.#registered.push({ selector: null, owner: handlers, handlers: read });
    return this;
  }

  transform(response) {
    requireArguments(arguments.length, 1, "HTMLRewriter.transform");
    if (!isResponse(response)) {
      throw new TypeError("Failed to execute 'transform' on 'HTMLRewriter': parameter 1 is not of type 'Response'.");
    }
    if (response.type === "error") throw new TypeError("HTMLRewriter cannot transform an error response");
    const { body } = response;
    if (body === null) return response;
    if (response.bodyUsed) {
      throw new TypeError(
        "Body has already been used. It can only be used once. Use tee() first if you need to read it twice.",
      );
    }
    const charset = charsetOf(response.headers.get("content-type"));
    const transform = new Transform(body, this.#registered, charset, isOn("html_rewriter_treats_esi_include_as_void_tag"));
    const output = new ReadableStream(transform.source(), { highWaterMark: Transform.HELD });
    return new Response(output, response);
  }
}

defineInterface(HTMLRewriter, { name: "HTMLRewriter", describe: () => ({}) });
