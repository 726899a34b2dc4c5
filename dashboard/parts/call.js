// One call as a line that opens: its request, console lines, exception and the limits it used.
import { useState } from "preact/hooks";
import { bytes, cut, ms, timeOfDay, time } from "../core/format.js";
import { html } from "../core/html.js";
import { Badge, Copy, Text } from "./pieces.js";

const NO_FAULT = ["ok", "canceled", "responseStreamDisconnected"];

export const isBad = (entry) => !NO_FAULT.includes(entry.outcome) || entry.status >= 500;

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curl(entry) {
  const left = ["host", "content-length", "connection", "transfer-encoding", "accept-encoding"];
  const headers = Object.entries(entry.headers).filter(([name]) => !left.includes(name));
  return ["curl", entry.method === "GET" ? "" : `-X ${entry.method}`, quoted(entry.url), ...headers.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)]
    .filter(Boolean)
    .join(" ");
}

function pathOf(url) {
  try {
    const { pathname, search } = new URL(url);
    return pathname + search;
  } catch {
    return url;
  }
}

export function Call({ entry, worker, open = false }) {
  const [isOpen, setOpen] = useState(open); // what is inside is made when it is seen: a list has hundreds of calls
  const isFetch = entry.event === "fetch";
  const said = entry.exception?.message ?? entry.logs.at(-1)?.message ?? "";
  return html`<details class=${`call ${isBad(entry) ? "is-bad" : ""}`} open=${isOpen} onToggle=${(event) => setOpen(event.target.open)}>
    <summary>
      <time class="mono" datetime=${entry.timestamp} title=${time(entry.timestamp)}>${timeOfDay(entry.timestamp)}</time>
      <span class="what">${isBad(entry) ? html`<${Badge} kind="bad">${entry.outcome === "ok" ? entry.status : entry.outcome}<//>` : html`<${Badge}>${isFetch ? entry.status : entry.event}<//>`}</span>
      <span class="mono path"><b>${isFetch ? entry.method : entry.event}</b> <${Text} most=${160}>${isFetch ? pathOf(entry.url) : entry.url}<//></span>
      <span class="number soft">${ms(entry.wall_ms)}</span>
      <span class="said"><${Text} most=${200}>${said}<//></span>
    </summary>
    ${isOpen && html`<${Inside} entry=${entry} worker=${worker} />`}
  </details>`;
}

function Inside({ entry, worker }) {
  const headers = Object.entries(entry.headers);
  const ops = Object.entries(entry.ops ?? {});
  return html`<div class="inside">
    ${entry.exception && html`<section class="thrown"><h2 class="h3">Exception</h2>
      <p><strong><${Text} most=${2_000}>${entry.exception.message}<//></strong></p>
      ${entry.exception.line > 0 && html`<p class="mono"><${Text}>${entry.exception.file}<//>:${entry.exception.line}:${entry.exception.column}</p>`}
      ${entry.exception.stack && html`<pre tabindex="0"><${Text} most=${8_000}>${entry.exception.stack}<//></pre>`}
    </section>`}
    ${entry.logs.length > 0 && html`<section><h2 class="h3">Console</h2>
      <ol class="lines">${entry.logs.slice(0, 200).map((line) => html`<li class=${line.level}><span class="level">${line.level}</span><${Text} most=${4_000}>${line.message}<//></li>`)}</ol>
      ${(entry.truncated || entry.logs.length > 200) && html`<p class="soft">There were more lines than are shown.</p>`}
    </section>`}
    <section><h2 class="h3">Used</h2>
      <div class="meters">
        <${Used} name="CPU" value=${entry.cpu_ms} most=${worker?.limits.cpu_ms} format=${ms} />
        <${Used} name="Time" value=${entry.wall_ms} most=${worker?.limits.wall_ms} format=${ms} />
        ${entry.memory_mb > 0 && html`<${Used} name="Memory" value=${entry.memory_mb} most=${worker?.limits.memory_mb} format=${(mb) => bytes(mb * 1_048_576)} />`}
        <${Used} name="Requests to others" value=${entry.subrequests ?? 0} most=${worker?.limits.internal_subrequests} format=${String} />
      </div>
      ${ops.length > 0 && html`<p class="soft small">${ops.map(([name, number]) => `${name} × ${number}`).join(", ")}</p>`}
    </section>
    ${entry.event === "fetch" && html`<section><h2 class="h3">Request</h2>
      <p class="mono wrap"><${Text} most=${2_000}>${`${entry.method} ${entry.url}`}<//></p>
      ${headers.length > 0 && html`<dl class="headers mono">${headers.map(([name, value]) => html`<div><dt><${Text}>${name}<//></dt><dd><${Text} most=${500}>${value}<//></dd></div>`)}</dl>`}
      <${Copy} text=${curl(entry)} label="Copy as curl" />
    </section>`}
    <p class="soft small mono">version ${cut(entry.version_id, 40)}</p>
  </div>`;
}

/** A part of a limit, as a bar with its numbers. */
export function Used({ name, value, most, format }) {
  const part = most ? Math.min(1, value / most) : 0;
  return html`<div class="used">
    <span>${name}</span>
    <span class=${`track ${part > 0.8 ? "warn" : ""}`} aria-hidden="true"><i style=${{ width: `${Math.max(part * 100, value ? 2 : 0)}%` }}></i></span>
    <span class="number">${format(value)}${most ? html`<span class="soft"> of ${format(most)}</span>` : ""}</span>
  </div>`;
}
