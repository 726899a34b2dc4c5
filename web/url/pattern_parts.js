// One component of a URL pattern: parses its text into parts, and converts the parts to a regular expression and back to text.
// https://urlpattern.spec.whatwg.org/#parsing-pattern-strings
import { isNameCodePoint, tokenize } from "./pattern_tokens.js";

const FULL_WILDCARD = ".*";

/** https://urlpattern.spec.whatwg.org/#options-header; `prefix` is the character that a group may take from the text before it. */
export const DEFAULT = { delimiter: "", prefix: "" };
export const HOSTNAME = { delimiter: ".", prefix: "" };
export const PATHNAME = { delimiter: "/", prefix: "/" };

const escapeRegExp = (text) => text.replace(/[.+*?^${}()[\]|/\\]/g, "\\$&");

/** https://urlpattern.spec.whatwg.org/#escape-a-pattern-string */
export const escapePattern = (text) => text.replace(/[+*?:{}()\\]/g, "\\$&");

/** https://urlpattern.spec.whatwg.org/#generate-a-segment-wildcard-regexp */
const segmentWildcard = ({ delimiter }) => `[^${escapeRegExp(delimiter)}]+?`;

/** https://urlpattern.spec.whatwg.org/#pattern-parser */
class PatternParser {
  #tokens;
  #at = 0;
  #parts = [];
  #fixed = ""; // text not yet added to a part
  #names = new Set();
  #nextNumber = 0;
  #options;
  #encode;

  constructor(input, options, encode) {
    this.#tokens = tokenize(Array.from(input));
    this.#options = options;
    this.#encode = encode;
  }

  /** https://urlpattern.spec.whatwg.org/#parse-a-pattern-string */
  parse() {
    while (this.#at < this.#tokens.length) {
      const char = this.#take("char");
      const name = this.#take("name");
      const matcher = this.#takeMatcher(name);
      if (name !== null || matcher !== null) {
        let prefix = char?.value ?? "";
        if (prefix !== this.#options.prefix) {
          this.#fixed += prefix;
          prefix = "";
        }
        this.#endFixed();
        this.#add(prefix, name, matcher, "", this.#takeModifier());
        continue;
      }
      const fixed = char ?? this.#take("escaped-char");
      if (fixed !== null) {
        this.#fixed += fixed.value;
      } else if (this.#take("open") !== null) {
        this.#readGroup();
      } else {
        this.#endFixed();
        this.#require("end");
      }
    }
    return this.#parts;
  }

  #readGroup() {
    const prefix = this.#takeText();
    const name = this.#take("name");
    const matcher = this.#takeMatcher(name);
    const suffix = this.#takeText();
    this.#require("close");
    this.#add(prefix, name, matcher, suffix, this.#takeModifier());
  }

  #take(type) {
    if (this.#tokens[this.#at]?.type !== type) return null;
    return this.#tokens[this.#at++];
  }

  #takeMatcher(name) {
    return this.#take("regexp") ?? (name === null ? this.#take("asterisk") : null);
  }

  #takeModifier() {
    return (this.#take("other-modifier") ?? this.#take("asterisk"))?.value ?? "";
  }

  #takeText() {
    let text = "";
    for (;;) {
      const token = this.#take("char") ?? this.#take("escaped-char");
      if (token === null) return text;
      text += token.value;
    }
  }

  #require(type) {
    if (this.#take(type) !== null) return;
    throw new TypeError(`URLPattern: expected ${type} but found '${this.#tokens[this.#at]?.value}'.`);
  }

  #endFixed() {
    if (this.#fixed === "") return;
    const value = this.#encode(this.#fixed);
    this.#fixed = "";
    this.#parts.push({ type: "fixed-text", value, modifier: "", name: "", prefix: "", suffix: "" });
  }

  /** https://urlpattern.spec.whatwg.org/#add-a-part */
  #add(prefix, nameToken, matcher, suffix, modifier) {
    if (nameToken === null && matcher === null) {
      if (modifier === "") {
        this.#fixed += prefix;
        return;
      }
      this.#endFixed();
      if (prefix === "") return;
      this.#parts.push({ type: "fixed-text", value: this.#encode(prefix), modifier, name: "", prefix: "", suffix: "" });
      return;
    }
    this.#endFixed();
    const segment = segmentWildcard(this.#options);
    let value = segment;
    if (matcher !== null) value = matcher.type === "asterisk" ? FULL_WILDCARD : matcher.value;
    let type = "regexp";
    if (value === segment) type = "segment-wildcard";
    else if (value === FULL_WILDCARD) type = "full-wildcard";
    if (type !== "regexp") value = "";
    const name = nameToken === null ? `${this.#nextNumber++}` : nameToken.value;
    if (this.#names.has(name)) throw new TypeError(`URLPattern: two groups are called '${name}'.`);
    this.#names.add(name);
    this.#parts.push({ type, value, modifier, name, prefix: this.#encode(prefix), suffix: this.#encode(suffix) });
  }
}

/** https://urlpattern.spec.whatwg.org/#generate-a-regular-expression-and-name-list */
function toRegExp(parts, options) {
  const names = [];
  let source = "^";
  for (const { type, value, modifier, name, prefix, suffix } of parts) {
    if (type === "fixed-text") {
      source += modifier === "" ? escapeRegExp(value) : `(?:${escapeRegExp(value)})${modifier}`;
      continue;
    }
    names.push(name);
    let matcher = value;
    if (type === "segment-wildcard") matcher = segmentWildcard(options);
    else if (type === "full-wildcard") matcher = FULL_WILDCARD;
    const isRepeated = modifier === "*" || modifier === "+";
    const [before, after] = [escapeRegExp(prefix), escapeRegExp(suffix)];
    if (prefix === "" && suffix === "") {
      source += isRepeated ? `((?:${matcher})${modifier})` : `(${matcher})${modifier}`;
    } else if (isRepeated) {
      source += `(?:${before}((?:${matcher})(?:${after}${before}(?:${matcher}))*)${after})${modifier === "*" ? "?" : ""}`;
    } else {
      source += `(?:${before}(${matcher})${after})${modifier}`;
    }
  }
  return { source: `${source}$`, names };
}

/** https://urlpattern.spec.whatwg.org/#generate-a-pattern-string */
function toPatternString(parts, options) {
  let result = "";
  for (const [index, part] of parts.entries()) {
    const { type, value, modifier, name, prefix, suffix } = part;
    if (type === "fixed-text") {
      result += modifier === "" ? escapePattern(value) : `{${escapePattern(value)}}${modifier}`;
      continue;
    }
    const previous = parts[index - 1];
    const isNamed = !/^\d/.test(name);
    const isGroup = needsGroup(part, isNamed, previous, parts[index + 1], options);
    let text = escapePattern(prefix);
    if (isNamed) text += `:${name}`;
    if (type === "regexp") {
      text += `(${value})`;
    } else if (type === "segment-wildcard" && !isNamed) {
      text += `(${segmentWildcard(options)})`;
    } else if (type === "full-wildcard") {
      const isAlone = previous === undefined || previous.type === "fixed-text" || previous.modifier !== "";
      text += !isNamed && (isAlone || isGroup || prefix !== "") ? "*" : `(${FULL_WILDCARD})`;
    }
    // A letter after a name would be read as part of the name.
    if (type === "segment-wildcard" && isNamed && isNameCodePoint(Array.from(suffix)[0], false)) text += "\\";
    text += escapePattern(suffix);
    result += (isGroup ? `{${text}}` : text) + modifier;
  }
  return result;
}

function needsGroup({ type, modifier, prefix, suffix }, isNamed, previous, next, options) {
  if (suffix !== "" || (prefix !== "" && prefix !== options.prefix)) return true;
  if (isNamed && type === "segment-wildcard" && modifier === "" && next?.prefix === "" && next.suffix === "") {
    const isReadOn = next.type === "fixed-text" ? isNameCodePoint(Array.from(next.value)[0], false) : /^\d/.test(next.name);
    if (isReadOn) return true;
  }
  const isAfterPrefix = previous?.type === "fixed-text" && options.prefix !== "" && previous.value.endsWith(options.prefix);
  return prefix === "" && isAfterPrefix;
}

/**
 * https://urlpattern.spec.whatwg.org/#compile-a-component: { regexp, names, text, hasRegExpGroups }.
 * `encode(text)` converts text to the form it has in a URL.
 */
export function compileComponent(input, encode, options, ignoreCase = false) {
  const parts = new PatternParser(input, options, (text) => (text === "" ? "" : encode(text))).parse();
  const { source, names } = toRegExp(parts, options);
  let regexp;
  try {
    regexp = new RegExp(source, ignoreCase ? "vi" : "v");
  } catch {
    throw new TypeError(`URLPattern: '${input}' has an invalid regular expression.`);
  }
  const hasRegExpGroups = parts.some((part) => part.type === "regexp");
  return { regexp, names, text: toPatternString(parts, options), hasRegExpGroups };
}
