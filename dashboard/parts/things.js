// Lists of what a tenant has: resources by name, with a form that makes one; and pages of entries that the node hands out by cursor.
import { useMemo, useState } from "preact/hooks";
import { all, call } from "../core/api.js";
import { html } from "../core/html.js";
import { useAction, useQuery } from "../core/query.js";
import { go, Link, route, setQuery } from "../core/router.js";
import { may } from "../core/session.js";
import { More, Text } from "./pieces.js";
import { Empty, Failed, Loaded } from "./states.js";

const MOST = 10_000;

/** A table: `columns` are { name, of(row), number }, the first of them names the row. */
export function Rows({ rows, columns, caption }) {
  return html`<div class="cards"><table>
    ${caption && html`<caption class="hidden">${caption}</caption>`}
    <thead><tr>${columns.map(({ name, number }) => html`<th scope="col" class=${number ? "number" : ""}>${name}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${columns.map(({ name, of, number }, place) =>
      place === 0 ? html`<th scope="row">${of(row)}</th>` : html`<td data-label=${name} class=${number ? "number" : ""}><span>${of(row)}</span></td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/**
 * The resources of one kind. `at` is their page, `path` and `field` are those of the API, `noun` their name ("namespace"), `command` makes
 * the first one (or `about` says how one comes to be). `columns` come after the name.
 */
export function Resources({ at, path, field, noun, command, columns = [], canMake = true, first = `No ${noun} yet`, about = null }) {
  const query = useQuery((signal) => all(path, field, MOST, { signal }), [path], { every: 15_000 });
  return html`<${Loaded} query=${query}>${(found) => html`
    ${found.length === 0
      ? html`<${Empty} title=${first}>${about ?? html`<p>A deploy that binds one makes it, and so does:</p><pre tabindex="0"><code>${command}</code></pre>`}<//>`
      : html`<${Named} found=${found} noun=${noun} columns=${[{ name: "Name", of: ({ name }) => html`<${Link} to=${`/data/${at}/${encodeURIComponent(name)}`}><${Text}>${name}<//><//>` }, ...columns]} />`}
    ${canMake && may("deploy") && html`<${Make} at=${at} path=${path} noun=${noun} />`}`}<//>`;
}

export function Named({ found, noun, columns, textOf = ({ name }) => name }) {
  const typed = route.value.query.get("q") ?? "";
  const words = typed.toLowerCase();
  const rows = useMemo(() => found.filter((each) => textOf(each).toLowerCase().includes(words)), [found, words]);
  return html`
    ${found.length > 5 && html`<div class="bar"><input type="search" aria-label="Filter by name" placeholder="Filter by name" value=${typed} onInput=${(event) => setQuery({ q: event.target.value })} /></div>`}
    ${rows.length === 0 && html`<${Empty} title=${`No ${noun} has this in its name`}><p><button type="button" onClick=${() => setQuery({ q: "" })}>Show all</button></p><//>`}
    <${More} rows=${rows}>${(some) => some.length > 0 && html`<${Rows} rows=${some} columns=${columns} />`}<//>
    ${found.length >= MOST && html`<p class="soft">Only the first ${MOST.toLocaleString("en")} are here.</p>`}`;
}

function Make({ at, path, noun }) {
  const [name, setName] = useState("");
  const make = useAction(() => call("POST", path, { name }));
  const submit = async (event) => {
    event.preventDefault();
    if ((await make.run()) !== null) go(`/data/${at}/${encodeURIComponent(name)}`);
  };
  return html`<form class="bar" onSubmit=${submit}>
      <label>Name of a new ${noun} <input type="text" required maxlength="128" spellcheck="false" autocomplete="off" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
      <button type="submit" disabled=${make.busy}>Create ${noun}</button>
    </form>
    ${make.error && html`<${Failed} error=${make.error} />`}`;
}

/** One page of a list is shown at a time, so a list of any length is quick. Its cursor is in the address: Back goes to the page before. */
export const cursorNow = () => route.value.query.get("after") ?? "";

export function PageTurn({ cursor }) {
  const isFirst = !cursorNow();
  if (isFirst && !cursor) return null;
  return html`<p class="more turn">
    ${!isFirst && html`<button type="button" onClick=${() => setQuery({ after: "" }, {})}>First page</button>`}
    ${cursor ? html`<button type="button" onClick=${() => setQuery({ after: cursor }, {})}>Next page</button>` : html`<span class="soft">This is the last page.</span>`}
  </p>`;
}
