// Back in time: the bookmark of a moment, and the database as it was then. A restore can itself be undone. Export, and the end.
import { useState } from "preact/hooks";
import { call } from "#dashboard/core/api.js";
import { html } from "#dashboard/core/html.js";
import { useAction, useQuery } from "#dashboard/core/query.js";
import { go } from "#dashboard/core/router.js";
import { Download } from "#dashboard/parts/bytes.js";
import { Copy, Dialog, Text } from "#dashboard/parts/pieces.js";
import { Failed, Loaded } from "#dashboard/parts/states.js";
import { Sure } from "#dashboard/views/settings.js";
import { bookmarkOf, mayChange, pathOf, restore } from "./ask.js";

export function TimeTravel({ name }) {
  const [moment, setMoment] = useState("");
  const [bookmark, setBookmark] = useState("");
  const [open, setOpen] = useState("");
  const [told, setTold] = useState(null);
  const now = useQuery((signal) => bookmarkOf(name, "", signal), [name]);
  const find = useAction(async () => setBookmark(await bookmarkOf(name, new Date(moment).toISOString())));
  const submit = (event) => {
    event.preventDefault();
    find.run();
  };
  const restored = ({ previous_bookmark }) => {
    setOpen("");
    setTold(previous_bookmark);
    now.again();
  };
  return html`<section><h2>Time Travel</h2>
      <p class="soft">Every write leaves a point that the database can go back to.</p>
      <${Loaded} query=${now}>${(point) => html`<dl class="facts"><div><dt>Bookmark of now</dt><dd><code><${Text}>${point}<//></code> <${Copy} text=${point} /></dd></div></dl>`}<//>
      <form class="bar" onSubmit=${submit}>
        <label>As it was at <input type="datetime-local" step="1" required value=${moment} onInput=${(event) => setMoment(event.target.value)} /></label>
        <button type="submit" disabled=${find.busy}>Find the bookmark</button>
        <label class="grow">Bookmark <input type="text" class="mono" spellcheck="false" autocomplete="off" value=${bookmark} onInput=${(event) => setBookmark(event.target.value.trim())} /></label>
        ${mayChange() && html`<button type="button" class="bad" disabled=${!bookmark} onClick=${() => setOpen("restore")}>Restore</button>`}
      </form>
      ${find.error && html`<${Failed} error=${find.error} />`}
      <div role="status">${told && html`<div class="notice"><p>The database is as it was then.</p><${TakeBack} key=${told} database=${name} bookmark=${told} /></div>`}</div>
    </section>
    ${mayChange() && html`<section><h2>Export</h2>
      <p class="soft">All tables and rows as SQL.</p>
      <p><${Download} path=${`${pathOf(name)}/export`} name=${`${name}.sql`} method="POST" /></p>
    </section>
    <section><h2>Delete</h2>
      <p class="soft">The database goes with all that it stores, and with its past.</p>
      <button type="button" class="bad" onClick=${() => setOpen("delete")}>Delete the database</button>
    </section>`}
    ${open === "restore" && html`<${Ask} title="Restore" word=${name} bookmark=${bookmark} onClose=${() => setOpen("")} onDone=${restored} />`}
    ${open === "delete" && html`<${Sure} title="Delete the database" word=${name} verb="Delete" act=${() => call("DELETE", pathOf(name))} onClose=${() => setOpen("")} onDone=${() => go("/data/d1")}><p>This cannot be undone.</p><//>`}`;
}

function Ask({ word, bookmark, onClose, onDone }) {
  const [answer] = useState({ now: null });
  return html`<${Sure} title="Restore the database" word=${word} verb="Restore" act=${async () => (answer.now = await restore(word, bookmark))} onClose=${onClose} onDone=${() => onDone(answer.now)}>
    <p>All that was written after <code><${Text}>${bookmark}<//></code> is undone, whoever wrote it. You can take the restore back.</p>
  <//>`;
}

/** Goes back to a bookmark that was taken right before a change. */
export function TakeBack({ database, bookmark }) {
  const [isOpen, setOpen] = useState(false);
  const back = useAction(() => restore(database, bookmark));
  if (back.done) return html`<p role="status">It is taken back. Reload the rows to see them.</p>`;
  return html`<div><button type="button" onClick=${() => setOpen(true)}>Take it back</button>
    ${isOpen && html`<${Dialog} title="Take it back" onClose=${() => setOpen(false)}>
      <p>The database goes back to the point before. What others have written since then is undone too.</p>
      ${back.error && html`<${Failed} error=${back.error} />`}
      <p class="right"><button type="button" onClick=${() => setOpen(false)}>Cancel</button><button type="button" class="bad" disabled=${back.busy} onClick=${back.run}>Take it back</button></p>
    <//>`}</div>`;
}
