// Small pieces that every view uses.
import { useEffect, useRef, useState } from "preact/hooks";
import { ago, cut, time, visible } from "../core/format.js";
import { html } from "../core/html.js";

/** The texts of tenants: shown as text, cut when long, with marks that would disguise it made visible. */
export const Text = ({ children, most = 300 }) => {
  const whole = visible(children ?? "");
  return html`<bdi title=${whole.length > most ? cut(whole, 2_000) : undefined}>${cut(whole, most)}</bdi>`;
};

export function Ago({ at }) {
  const [, setTurn] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTurn((turn) => turn + 1), 10_000);
    return () => clearInterval(timer);
  }, []);
  if (!at) return "–";
  return html`<time datetime=${at} title=${time(at)}>${ago(at)}</time>`;
}

export const Badge = ({ kind = "", children }) => html`<span class=${`badge ${kind}`}>${children}</span>`;

/** Calls over time as a line of 30 values, errors below it in red. The numbers beside it say the same. */
export function Spark({ values: all, errors: failed, label }) {
  const isNew = !all.slice(0, -1).some(Boolean); // the last value is of a time that is not over
  const [values, errors] = isNew ? [all, failed] : [all.slice(0, -1), failed?.slice(0, -1)];
  const most = Math.max(...values, 1);
  const place = (value, number) => `${(number * 100) / (values.length - 1)},${27 - (value * 24) / most}`;
  const line = values.map(place).join(" ");
  return html`<svg class="spark" viewBox="0 0 100 28" preserveAspectRatio="none" role="img" aria-label=${label}>
    <polygon class="area" points=${`0,27 ${line} 100,27`} />
    <polyline points=${line} />
    ${errors?.some(Boolean) && html`<polyline class="bad" points=${errors.map(place).join(" ")} />`}
  </svg>`;
}

export function Copy({ text, label = "Copy" }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return html`<button type="button" class="quiet" onClick=${copy}>
    ${label}<span role="status" class="soft">${done ? " copied" : ""}</span>
  </button>`;
}

/** A question in a window. `onClose(answer)`; Escape and a click beside it close it. */
export function Dialog({ title, onClose, children }) {
  const ref = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    return () => before?.focus?.();
  }, []);
  const outside = (event) => event.target === ref.current && onClose();
  return html`<dialog ref=${ref} aria-labelledby="dialog-title" onCancel=${onClose} onClick=${outside}>
    <div class="dialog-body">
      <h2 id="dialog-title">${title}</h2>
      ${children}
    </div>
  </dialog>`;
}

/** The list that rows are drawn from: `size` at first, more on request, so that 10,000 rows stay quick. */
export function More({ rows, size = 100, children }) {
  const [shown, setShown] = useState(size);
  const left = rows.length - shown;
  return html`${children(rows.slice(0, shown))}
    ${left > 0 &&
    html`<p class="more"><button type="button" onClick=${() => setShown(shown + 5 * size)}>
      Show ${Math.min(left, 5 * size).toLocaleString("en")} more of ${rows.length.toLocaleString("en")}
    </button></p>`}`;
}
