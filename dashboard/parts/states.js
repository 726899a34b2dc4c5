// What a view shows when there is nothing to show: it loads, it failed, it is empty.
import { html } from "../core/html.js";
import { visible } from "../core/format.js";

export function Loading({ slow }) {
  return html`<div class="loading" role="status">
    <div class="bones" aria-hidden="true"><i></i><i></i><i></i></div>
    <p>${slow ? "The node is slow to answer. Still waiting…" : "Loading…"}</p>
  </div>`;
}

export function Failed({ error, again, stale = false }) {
  const retries = !error.status || error.status >= 500 || error.status === 429;
  return html`<div class="notice bad" role="alert">
    <div>
      <strong>${visible(error.message)}</strong>
      ${error.hint && html`<p>${visible(error.hint)}</p>`}
      ${error.line > 0 && html`<p class="mono">${visible(error.file)}:${error.line}</p>`}
      ${stale && html`<p>Below is what was there before.</p>`}
      ${again && retries && html`<p class="soft">The page tries again by itself.</p>`}
    </div>
    ${again && html`<button type="button" onClick=${again}>Try now</button>`}
  </div>`;
}

/** With `whole`, it is the page itself and has its title. */
export function Empty({ title, whole = false, children }) {
  return html`<div class="empty">${whole ? html`<h1>${title}</h1>` : html`<h2>${title}</h2>`}${children}</div>`;
}

/** The states of a query around its data: `children` is a function of the data. */
export function Loaded({ query, children }) {
  const { data, error, slow, again } = query;
  if (data === null && error) return html`<${Failed} error=${error} again=${again} />`;
  if (data === null) return html`<${Loading} slow=${slow} />`;
  return html`${error && html`<${Failed} error=${error} again=${again} stale />`}
    ${!error && slow && html`<p class="notice" role="status">The node is slow to answer. Below is what was there before.</p>`}
    ${children(data)}`;
}
