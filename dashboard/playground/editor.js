// An editor for JavaScript: a textarea, with its text coloured behind it by the browser's highlights. No markup is made of the text,
// so Trusted Types hold. A browser without highlights shows a plain textarea.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { html } from "../core/html.js";

const CAN = typeof Highlight === "function" && "highlights" in CSS;
const MOST = 200_000; // characters that are coloured
const WORDS = "async await break case catch class const continue default delete do else export extends finally for from function get if import in instanceof let new null of return set static super switch this throw true false try typeof undefined var void while with yield".split(" ");
const TOKENS = new RegExp(
  [
    "(?<note>//[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|$))",
    "(?<text>\"(?:[^\"\\\\\\n]|\\\\.)*\"?|'(?:[^'\\\\\\n]|\\\\.)*'?|`(?:[^`\\\\]|\\\\[\\s\\S])*`?)",
    "(?<number>\\b(?:0[xob][\\da-f_]+|\\d[\\d_]*(?:\\.\\d+)?(?:e[+-]?\\d+)?)n?\\b)",
    `(?<word>\\b(?:${WORDS.join("|")})\\b)`,
  ].join("|"),
  "gi",
);

/** The places of what is coloured, by kind. Pure. */
export function tokens(source) {
  const found = { note: [], text: [], number: [], word: [] };
  for (const match of source.slice(0, MOST).matchAll(TOKENS)) {
    for (const [kind, value] of Object.entries(match.groups)) {
      if (value && (kind !== "word" || WORDS.includes(value))) found[kind].push([match.index, match.index + value.length]);
    }
  }
  return found;
}

export function Editor({ value, onInput, onRun, label, line = 0 }) {
  const area = useRef(null);
  const behind = useRef(null);
  useLayoutEffect(() => {
    if (!CAN) return undefined;
    const node = behind.current.firstChild;
    for (const [kind, places] of Object.entries(tokens(value))) {
      const ranges = places.map(([begin, end]) => {
        const range = new Range();
        range.setStart(node, begin);
        range.setEnd(node, end);
        return range;
      });
      CSS.highlights.set(`js-${kind}`, new Highlight(...ranges));
    }
    return () => CSS.highlights.clear();
  }, [value]);
  useEffect(() => {
    if (!line) return;
    const begin = value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    area.current.focus();
    area.current.setSelectionRange(begin, begin + (value.slice(begin).split("\n")[0]?.length ?? 0));
  }, [line]);
  const press = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      onRun();
    }
  };
  const scroll = () => {
    behind.current.scrollTop = area.current.scrollTop;
    behind.current.scrollLeft = area.current.scrollLeft;
  };
  return html`<div class=${`editor ${CAN ? "is-coloured" : ""}`}>
    <pre ref=${behind} aria-hidden="true">${`${value}\n`}</pre>
    <textarea ref=${area} aria-label=${label} spellcheck="false" autocomplete="off" autocapitalize="off" wrap="off" value=${value} onInput=${(event) => onInput(event.target.value)} onKeyDown=${press} onScroll=${scroll}></textarea>
  </div>`;
}
