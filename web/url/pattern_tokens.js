// Tokenizes pattern strings: https://urlpattern.spec.whatwg.org/#pattern-strings

const NAME_START = /[$_\p{ID_Start}]/u;
const NAME_PART = /[$_\u200c\u200d\p{ID_Continue}]/u;

/** https://urlpattern.spec.whatwg.org/#is-a-valid-name-code-point */
export function isNameCodePoint(codePoint, isFirst) {
  return codePoint !== undefined && (isFirst ? NAME_START : NAME_PART).test(codePoint);
}

/** The end of the regular expression that begins at `start`, or -1. https://urlpattern.spec.whatwg.org/#tokenize, step 9 of the loop */
function endOfRegExp(points, start) {
  let depth = 1;
  for (let at = start; at < points.length; at++) {
    const point = points[at];
    if (point > "\x7f" || (at === start && point === "?")) return -1;
    if (point === "\\") {
      at++;
      if (at === points.length || points[at] > "\x7f") return -1;
    } else if (point === ")") {
      depth--;
      if (depth === 0) return at === start ? -1 : at;
    } else if (point === "(") {
      depth++;
      if (points[at + 1] !== "?") return -1;
    }
  }
  return -1;
}

const SINGLE = { "*": "asterisk", "+": "other-modifier", "?": "other-modifier", "{": "open", "}": "close" };

/**
 * https://urlpattern.spec.whatwg.org/#tokenize: tokens of { type, value, index }, `index` in code points. An invalid character is an
 * error, or with `isLenient` a token of type "invalid-char".
 */
export function tokenize(points, isLenient = false) {
  const tokens = [];
  let at = 0;
  const add = (type, next, valueStart, valueEnd) => {
    tokens.push({ type, index: at, value: points.slice(valueStart, valueEnd).join("") });
    at = next;
  };
  const fail = (next, valueStart) => {
    if (!isLenient) throw new TypeError(`URLPattern: '${points.join("")}' cannot be read at character ${at}.`);
    add("invalid-char", next, valueStart, next);
  };
  while (at < points.length) {
    const point = points[at];
    if (Object.hasOwn(SINGLE, point)) {
      add(SINGLE[point], at + 1, at, at + 1);
    } else if (point === "\\") {
      if (at === points.length - 1) fail(at + 1, at);
      else add("escaped-char", at + 2, at + 1, at + 2);
    } else if (point === ":") {
      let end = at + 1;
      while (isNameCodePoint(points[end], end === at + 1)) end++;
      if (end === at + 1) fail(end, at);
      else add("name", end, at + 1, end);
    } else if (point === "(") {
      const end = endOfRegExp(points, at + 1);
      if (end === -1) fail(at + 1, at);
      else add("regexp", end + 1, at + 1, end);
    } else {
      add("char", at + 1, at, at + 1);
    }
  }
  tokens.push({ type: "end", index: at, value: "" });
  return tokens;
}

const ORDER = ["protocol", "authority", "username", "password", "hostname", "port", "pathname", "search", "hash"];
const isBefore = (state, other) => ORDER.indexOf(state) < ORDER.indexOf(other);

/** https://urlpattern.spec.whatwg.org/#constructor-string-parsing */
class ConstructorStringParser {
  result = {};
  #points;
  #tokens;
  #start = 0; // of the current component
  #at = 0;
  #step = 1; // 0 after a state is entered and before its first token
  #depth = 0; // nesting of groups
  #brackets = 0; // nesting of the brackets of an IPv6 address
  #state = "init";
  #isSpecial = false;
  #isSpecialProtocol;

  constructor(input, isSpecialProtocol) {
    this.#points = Array.from(input);
    this.#tokens = tokenize(this.#points, true);
    this.#isSpecialProtocol = isSpecialProtocol;
  }

  /** https://urlpattern.spec.whatwg.org/#parse-a-constructor-string */
  parse() {
    for (; this.#at < this.#tokens.length; this.#at += this.#step) {
      this.#step = 1;
      const { type } = this.#tokens[this.#at];
      if (type === "end") {
        if (this.#atEnd()) break;
      } else if (type === "open") {
        this.#depth++;
      } else if (this.#depth > 0 && type !== "close") {
        continue;
      } else {
        if (this.#depth > 0) this.#depth--;
        this.#read();
      }
    }
    const { result } = this;
    if (result.hostname !== undefined && result.port === undefined) result.port = "";
    return result;
  }

  /** True at the end of the input. */
  #atEnd() {
    if (this.#state === "init") {
      this.#rewind();
      if (this.#is("#")) this.#enter("hash", 1);
      else if (this.#isSearchPrefix()) this.#enter("search", 1);
      else this.#enter("pathname", 0);
      return false;
    }
    if (this.#state === "authority") {
      this.#rewind("hostname");
      return false;
    }
    this.#enter("done", 0);
    return true;
  }

  #read() {
    switch (this.#state) {
      case "init":
        if (this.#is(":")) this.#rewind("protocol");
        return;
      case "protocol":
        if (this.#is(":")) this.#endOfProtocol();
        return;
      case "authority":
        if (this.#is("@")) this.#rewind("username");
        else if (this.#is("/") || this.#isSearchPrefix() || this.#is("#")) this.#rewind("hostname");
        return;
      case "username":
        if (this.#is(":")) this.#enter("password", 1);
        else if (this.#is("@")) this.#enter("hostname", 1);
        return;
      case "password":
        if (this.#is("@")) this.#enter("hostname", 1);
        return;
      case "hostname":
        if (this.#is("[")) this.#brackets++;
        else if (this.#is("]")) this.#brackets--;
        else if (this.#is(":") && this.#brackets === 0) this.#enter("port", 1);
        else this.#endOfPart();
        return;
      default:
        this.#endOfPart();
    }
  }

  #endOfProtocol() {
    this.#isSpecial = this.#isSpecialProtocol(this.#component());
    const hasSlashes = this.#is("/", 1) && this.#is("/", 2);
    if (hasSlashes) this.#enter("authority", 3);
    else this.#enter(this.#isSpecial ? "authority" : "pathname", 1);
  }

  #endOfPart() {
    const state = this.#state;
    if (isBefore(state, "pathname") && this.#is("/")) this.#enter("pathname", 0);
    else if (isBefore(state, "search") && this.#isSearchPrefix()) this.#enter("search", 1);
    else if (isBefore(state, "hash") && this.#is("#")) this.#enter("hash", 1);
  }

  /** https://urlpattern.spec.whatwg.org/#change-state */
  #enter(next, skip) {
    const { result } = this;
    const state = this.#state;
    if (state !== "init" && state !== "authority") result[state] = this.#component();
    if (state !== "init" && next !== "done") {
      // The components in between are present and empty.
      if (isBefore(state, "hostname") && isBefore("hostname", next)) result.hostname ??= "";
      if (isBefore(state, "pathname") && isBefore("pathname", next)) result.pathname ??= this.#isSpecial ? "/" : "";
      if (isBefore(state, "search") && next === "hash") result.search ??= "";
    }
    this.#state = next;
    this.#at += skip;
    this.#start = this.#at;
    this.#step = 0;
  }

  #rewind(state = this.#state) {
    this.#at = this.#start;
    this.#step = 0;
    this.#state = state;
  }

  #tokenAt(index) {
    return this.#tokens[Math.min(index, this.#tokens.length - 1)];
  }

  /** https://urlpattern.spec.whatwg.org/#is-a-non-special-pattern-char */
  #is(value, ahead = 0) {
    const token = this.#tokenAt(this.#at + ahead);
    return token.value === value && ["char", "escaped-char", "invalid-char"].includes(token.type);
  }

  /** https://urlpattern.spec.whatwg.org/#is-a-search-prefix: a question mark that is not a modifier. */
  #isSearchPrefix() {
    if (this.#is("?")) return true;
    if (this.#tokens[this.#at].value !== "?") return false;
    return this.#at === 0 || !["name", "regexp", "close", "asterisk"].includes(this.#tokens[this.#at - 1].type);
  }

  /** https://urlpattern.spec.whatwg.org/#make-a-component-string */
  #component() {
    return this.#points.slice(this.#tokenAt(this.#start).index, this.#tokens[this.#at].index).join("");
  }
}

/** The components of a pattern given as one string. `isSpecialProtocol(pattern)`: true if it can match a special scheme. */
export function parseConstructorString(input, isSpecialProtocol) {
  return new ConstructorStringParser(input, isSpecialProtocol).parse();
}
