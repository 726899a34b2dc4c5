// Write a worker, run it in an isolate that is thrown away, then save it under a name or share it as a preview.
import { useLayoutEffect, useState } from "preact/hooks";
import { at, call, get } from "../core/api.js";
import { bytes, cut, ms } from "../core/format.js";
import { html } from "../core/html.js";
import { useAction } from "../core/query.js";
import { Link, workerPath } from "../core/router.js";
import { may } from "../core/session.js";
import { Used } from "../parts/call.js";
import { Badge, Copy, Dialog, Text } from "../parts/pieces.js";
import { Empty, Failed } from "../parts/states.js";
import { Editor } from "./editor.js";

const FIRST = `export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    console.log("asked for", pathname);
    return Response.json({ hello: "from the playground", pathname });
  },
};
`;
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
const SHOWN = 100_000; // characters of a response
const KEPT = "playground"; // where the draft is in sessionStorage: it survives a reload, and not the tab

/** As a module, whatever is in it: a mistake is then found in its line. */
const code = (script) => ({ modules: { "worker.js": script }, main: "worker.js" });

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT)) ?? {};
  } catch {
    return {};
  }
}

export function View() {
  const [before] = useState(kept);
  const [script, setScript] = useState(before.script ?? FIRST);
  const [wanted, setWanted] = useState({ method: "GET", url: "http://playground.localhost/", headers: "", body: "", ...before.wanted });
  const [line, setLine] = useState(0);
  const [open, setOpen] = useState("");
  useLayoutEffect(() => sessionStorage.setItem(KEPT, JSON.stringify({ script, wanted })), [script, wanted]);
  const run = useAction(async () => {
    setLine(0);
    const began = performance.now();
    const headers = wanted.headers.split("\n").filter((each) => each.trim()).map((each) => {
      const place = each.indexOf(":");
      return place < 0 ? [each, ""] : [each.slice(0, place).trim(), each.slice(place + 1).trim()];
    });
    const body = ["GET", "HEAD"].includes(wanted.method) ? "" : wanted.body;
    const answer = await call("POST", "/api/playground/run", { ...code(script), request: { method: wanted.method, url: wanted.url, headers, body } });
    return { ...answer, took: performance.now() - began };
  });
  if (!may("deploy")) return html`<${Empty} title="Your token may only look" whole><p>Running a draft needs the scope <code>deploy</code>.</p><//>`;
  const submit = (event) => {
    event?.preventDefault();
    if (!run.busy) run.run();
  };
  const put = (name) => (event) => setWanted({ ...wanted, [name]: event.target.value });
  return html`<div class="page"><div class="head"><h1>Playground</h1><p class="soft">A draft runs once, in an isolate that is thrown away. It has no bindings and changes nothing.</p></div>
    <div class="play">
      <div>
        <${Editor} label="Code of the draft" value=${script} onInput=${setScript} onRun=${submit} line=${line} />
        <p class="acts"><button type="button" class="primary" disabled=${run.busy} onClick=${submit}>${run.busy ? "Running…" : "Run"}</button>
          <button type="button" onClick=${() => setOpen("save")}>Save as worker</button>
          <button type="button" onClick=${() => setOpen("share")}>Share a preview</button>
          <span class="soft small"><kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it</span></p>
      </div>
      <div>
        <form class="request" onSubmit=${submit}>
          <div class="line"><label>Method <select value=${wanted.method} onChange=${put("method")}>${METHODS.map((each) => html`<option>${each}</option>`)}</select></label>
            <label class="grow">URL <input type="url" required spellcheck="false" value=${wanted.url} onInput=${put("url")} /></label></div>
          <details open=${Boolean(wanted.headers || wanted.body)}><summary>Headers and body</summary>
            <label>Headers, one on a line <textarea class="mono" rows="2" spellcheck="false" placeholder="accept: text/html" value=${wanted.headers} onInput=${put("headers")}></textarea></label>
            <label>Body <textarea class="mono" rows="3" spellcheck="false" value=${wanted.body} onInput=${put("body")}></textarea></label>
          </details>
        </form>
        ${run.error && html`<${Failed} error=${run.error} />${run.error.line > 0 && html`<button type="button" class="quiet" onClick=${() => setLine(run.error.line)}>Go to line ${run.error.line}</button>`}`}
        <div role="status">${run.done && !run.busy && html`<${Ran} ran=${run.done} onLine=${setLine} />`}</div>
      </div>
    </div>
    ${open === "save" && html`<${Save} script=${script} onClose=${() => setOpen("")} />`}
    ${open === "share" && html`<${Save} script=${script} onClose=${() => setOpen("")} isPreview />`}
  </div>`;
}

/** What came back. It is text whatever its type says: nothing of a worker runs on this page. */
function Ran({ ran, onLine }) {
  const { record, limits } = ran;
  const thrown = record?.exception;
  const isBad = ran.outcome !== "ok" || ran.status >= 500;
  return html`<section class="ran">
    <div class="head"><h2>${ran.status ? `${ran.status}` : "No response"}</h2><${Badge} kind=${isBad ? "bad" : "good"}>${ran.outcome}<//><span class="soft small">answered in ${ms(ran.took)}, started in ${ms(ran.startup_ms)}</span></div>
    ${thrown && html`<div class="notice bad"><div><strong><${Text} most=${2_000}>${thrown.message}<//></strong>${thrown.stack && html`<pre tabindex="0"><${Text} most=${4_000}>${thrown.stack}<//></pre>`}</div>
      ${thrown.line > 0 && html`<button type="button" onClick=${() => onLine(thrown.line)}>Go to line ${thrown.line}</button>`}</div>`}
    ${record && record.logs.length > 0 && html`<h3>Console</h3><ol class="lines">${record.logs.slice(0, 200).map((each) => html`<li class=${each.level}><span class="level">${each.level}</span><${Text} most=${4_000}>${each.message}<//></li>`)}</ol>`}
    ${ran.status > 0 && html`<h3>Body</h3>
      ${ran.body ? html`<pre class="value" tabindex="0"><${Text} most=${SHOWN}>${ran.body}<//></pre>` : html`<p class="soft">It is empty.</p>`}
      <p class="soft small">${[ran.is_binary ? "Binary, as base64." : "", ran.is_cut || ran.body.length > SHOWN ? "It is longer than what is shown." : ""].filter(Boolean).join(" ")}</p>
      ${ran.headers.length > 0 && html`<details><summary>${ran.headers.length} ${ran.headers.length === 1 ? "header" : "headers"}</summary><dl class="headers mono">${ran.headers.map(([name, value]) => html`<div><dt><${Text}>${name}<//></dt><dd><${Text} most=${500}>${value}<//></dd></div>`)}</dl></details>`}`}
    <h3>Used of its limits</h3>
    ${record
      ? html`<div class="meters">
        <${Used} name="CPU" value=${record.cpu_ms} most=${limits.cpu_ms} format=${ms} />
        <${Used} name="Time" value=${record.wall_ms} most=${limits.wall_ms} format=${ms} />
        ${record.memory_mb > 0 && html`<${Used} name="Memory" value=${record.memory_mb} most=${limits.memory_mb} format=${(mb) => bytes(mb * 1_048_576)} />`}
        <${Used} name="Requests to others" value=${record.subrequests ?? 0} most=${limits.subrequests} format=${String} />
      </div>`
      : html`<p class="soft">It still runs, in <code>waitUntil()</code>, so its numbers are not known.</p>`}
  </section>`;
}

/** A worker of this code, or a version of one without traffic and with a preview URL. */
function Save({ script, isPreview = false, onClose }) {
  const [name, setName] = useState("");
  const save = useAction(async () => {
    const exists = await get("/api/workers", { limit: 1_000 }).then(({ workers }) => workers.some((each) => each.name === name));
    const message = "From the playground";
    if (isPreview && exists) {
      const { preview_url: url } = await call("POST", at`/api/workers/${name}/versions`, { ...code(script), message });
      return { url, what: "This version gets no traffic. Whoever has the address reaches it:" };
    }
    if (exists) await call("PUT", at`/api/workers/${name}`, { ...code(script), message });
    else await call("POST", "/api/workers", { name, ...code(script), message });
    const { url } = await get(at`/api/workers/${name}`);
    return { url, what: exists ? "A new version answers at" : "It answers at" };
  });
  const submit = (event) => {
    event.preventDefault();
    save.run();
  };
  const title = isPreview ? "Share a preview" : "Save as worker";
  if (save.done) {
    return html`<${Dialog} title=${title} onClose=${onClose}>
      <p>${save.done.what}</p>
      ${save.done.url ? html`<p class="wrap live"><a href=${save.done.url} target="_blank" rel="noopener noreferrer">${cut(save.done.url)}</a> <${Copy} text=${save.done.url} /></p>` : html`<p class="soft">This node has no preview URLs, or the worker forbids them.</p>`}
      <p class="right"><${Link} to=${workerPath(name)} class="button">To the worker<//><button type="button" class="primary" onClick=${onClose}>Close</button></p>
    <//>`;
  }
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${submit}>
      <label>${isPreview ? "Worker that gets the version" : "Name of the worker"} <input type="text" required maxlength="63" autocomplete="off" spellcheck="false" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
      <p class="soft">${isPreview ? "The traffic of the worker stays where it is. A worker of a new name is made first." : "A worker of this name gets a new version, which takes its traffic."}</p>
      ${save.error && html`<${Failed} error=${save.error} />`}
      <p class="right"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${save.busy}>${save.busy ? "Saving…" : isPreview ? "Share" : "Save"}</button></p>
    </form>
  <//>`;
}
