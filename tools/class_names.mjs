// The bundler turns `class Response {` into `var Response = class _Response {`, and a class that does not mention itself, such as
// Event, into `var Event = class {`. Workers would see the inner name in V8's messages: "Class constructor _Response cannot be
// invoked without 'new'", "must be an instance of class anonymous". This gives every class its own name back. Inside a class the
// name means the class, as the variable around it does.

const SELF_NAMED = /(?<![\w$.])([A-Za-z$][\w$]*)=class _\1(?![\w$])/g;
const NAMELESS = /(?<![\w$.])var ([A-Za-z$][\w$]*[A-Za-z$])=class(?=\{| extends\b)/g;

export function keepClassNames(text) {
  const names = new Set(Array.from(text.matchAll(SELF_NAMED), ([, name]) => name));
  let kept = text;
  for (const name of names) {
    kept = kept.replace(new RegExp(`(?<![\\w$.#])_${name.replaceAll("$", "\\$")}(?![\\w$])`, "g"), name);
  }
  return kept.replace(NAMELESS, "var $1=class $1");
}
