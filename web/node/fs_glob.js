// Patterns of fs.glob and path.matchesGlob as regular expressions.

const SPECIAL = /[.+^${}()|[\]\\]/g;

/** The alternatives of `{a,b}` in a pattern, outermost first. */
function expand(pattern) {
  let depth = 0;
  let start = -1;
  for (let at = 0; at < pattern.length; at++) {
    if (pattern[at] === "\\") at++;
    else if (pattern[at] === "{" && depth++ === 0) start = at;
    else if (pattern[at] === "}" && depth > 0 && --depth === 0) {
      const parts = split(pattern.slice(start + 1, at));
      if (parts.length === 1) continue;
      return parts.flatMap((part) => expand(pattern.slice(0, start) + part + pattern.slice(at + 1)));
    }
  }
  return [pattern];
}

function split(text) {
  const parts = [""];
  let depth = 0;
  for (const char of text) {
    if (char === "," && depth === 0) {
      parts.push("");
      continue;
    }
    if (char === "{") depth++;
    if (char === "}") depth--;
    parts[parts.length - 1] += char;
  }
  return parts;
}

// One name of a path. A leading dot is matched only by a dot.
function segment(text) {
  let source = "";
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    const end = char === "[" ? text.indexOf("]", at + 2) : -1;
    if (char === "*") {
      while (text[at + 1] === "*") at++; // more stars are one: their product would backtrack without end
      source += "[^/]*";
    } else if (char === "?") source += "[^/]";
    else if (end !== -1) {
      source += `[${text.slice(at + 1, end).replace(/^!/, "^").replace(/\\/g, "\\\\")}]`;
      at = end;
    } else if (char === "\\" && at + 1 < text.length) source += text[++at].replace(SPECIAL, "\\$&");
    else source += char.replace(SPECIAL, "\\$&");
  }
  return /^[*?[]/.test(text) ? `(?!\\.)(?=[^/])${source}` : source;
}

/** A regular expression that matches whole paths. */
export function globToRegExp(pattern) {
  const sources = expand(pattern).map((one) => {
    const names = one.split("/").filter((name, at, all) => !(name === "**" && all[at + 1] === "**"));
    let source = "";
    names.forEach((name, at) => {
      const isLast = at === names.length - 1;
      const ends = at === names.length - 2 && names.at(-1) === "**"; // `a/**` matches `a` too
      if (name !== "**") source += segment(name) + (isLast || ends ? "" : "/");
      else if (!isLast) source += "(?:(?!\\.)[^/]+/)*";
      else source += at === 0 ? "(?:(?!\\.)[^/]+(?:/(?!\\.)[^/]+)*)?" : "(?:/(?!\\.)[^/]+)*";
    });
    return source;
  });
  return new RegExp(`^(?:${sources.join("|")})$`);
}
