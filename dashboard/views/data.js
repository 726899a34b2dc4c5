// What workers keep, by kind. The pages of a kind are in the folder of its binding, and are fetched when they are opened.
import { entries } from "#every-page";
import { useEffect } from "preact/hooks";
import { html } from "../core/html.js";
import { go, Link, route } from "../core/router.js";
import { lazy } from "../parts/lazy.js";
import { Empty } from "../parts/states.js";

const VIEWS = new Map(entries.map((entry) => [entry, lazy(entry.load, "View")]));

export function Data() {
  const [, at, ...rest] = route.value.parts;
  const entry = entries.find((each) => each.at === at);
  useEffect(() => {
    if (at === undefined) go(`/data/${entries[0].at}`, { replace: true });
    document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [at]);
  if (at === undefined) return null;
  if (!entry) return html`<${Empty} title="There is no such page" whole><p><${Link} to="/data">To the data<//></p><//>`;
  const view = html`<${VIEWS.get(entry)} rest=${rest} />`;
  if (rest.length) return html`<div class="page"><p class="crumb"><${Link} to="/data">Data<//> / <${Link} to=${`/data/${at}`}>${entry.name}<//></p>${view}</div>`;
  return html`<div class="page">
    <h1>Data</h1>
    <nav class="tabs" aria-label="Kinds of data">
      ${entries.map((each) => html`<${Link} to=${`/data/${each.at}`} aria-current=${each === entry ? "page" : undefined}>${each.name}<//>`)}
    </nav>
    <p class="soft">${entry.what}</p>
    ${view}
  </div>`;
}

/** The page that shows what a binding of a worker leads to; "" if there is none. */
export function placeOf(binding, worker) {
  for (const { at, placeOf } of entries) {
    const parts = placeOf(binding, worker);
    if (parts) return ["/data", at, ...parts.map(encodeURIComponent)].join("/");
  }
  return "";
}
