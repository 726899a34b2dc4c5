// One queue: its backlog and consumer; pause, purge, and messages to look at, to send, and to move back to be tried again.
import { useState } from "preact/hooks";
import { all, at, call, get } from "#dashboard/core/api.js";
import { bytes, count, ms } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { useAction, useQuery } from "#dashboard/core/query.js";
import { go, Link } from "#dashboard/core/router.js";
import { may } from "#dashboard/core/session.js";
import { Ago, Badge, Dialog, Text } from "#dashboard/parts/pieces.js";
import { Empty, Failed, Loaded } from "#dashboard/parts/states.js";
import { Sure } from "#dashboard/views/settings.js";
import { consumerOf } from "./consumer.js";
import { Messages, Send } from "./messages.js";

export function OneQueue({ name }) {
  const path = at`/api/queues/${name}`;
  const query = useQuery((signal) => get(path, {}, { signal }), [name], { every: 3_000 });
  const [open, setOpen] = useState("");
  const [told, setTold] = useState("");
  const [turn, setTurn] = useState(0);
  const changed = (words) => {
    setOpen("");
    setTold(words);
    setTurn(turn + 1);
    query.again();
  };
  const act = useAction(async (verb) => {
    const { purged } = await call("POST", `${path}/${verb}`);
    changed(purged === undefined ? "" : `${count(purged)} messages are deleted.`);
  });
  if (query.error?.status === 404) {
    return html`<${Empty} title="There is no such queue" whole><p>It may be deleted, or belong to another tenant. <${Link} to="/data/queues">All queues<//></p><//>`;
  }
  return html`<div class="head"><h1><${Text}>${name}<//></h1>${query.data?.paused && html`<${Badge} kind="bad">paused<//>`}</div>
    <${Loaded} query=${query}>${(queue) => html`
      <dl class="figures">
        <div><dt>Waiting</dt><dd>${count(queue.waiting)}</dd></div>
        <div><dt>Delayed</dt><dd>${count(queue.delayed)}</dd></div>
        <div><dt>At a consumer</dt><dd>${count(queue.leased)}</dd></div>
        <div><dt>Oldest</dt><dd><${Ago} at=${queue.oldest_at} /></dd></div>
        <div><dt>Size</dt><dd>${bytes(queue.bytes)}</dd></div>
        <div><dt>Dropped</dt><dd class=${queue.dropped ? "bad-text" : ""}>${count(queue.dropped)}</dd></div>
      </dl>
      <dl class="facts">
        <div><dt>Consumer</dt><dd>${consumerOf(queue)}</dd></div>
        <div><dt>Dead letters go to</dt><dd>${queue.dead_letter_queue ? html`<${Link} to=${at`/data/queues/${queue.dead_letter_queue}`}><${Text}>${queue.dead_letter_queue}<//><//>` : html`<span class="soft">nowhere: they are dropped and counted</span>`}</dd></div>
        <div><dt>Messages are kept</dt><dd>${queue.retention_seconds < 86_400 ? ms(queue.retention_seconds * 1_000) : `${count(queue.retention_seconds / 86_400)} days`}</dd></div>
      </dl>
      ${may("deploy") && html`<p class="acts wide">
        <button type="button" class="primary" onClick=${() => setOpen("send")}>Send a message</button>
        <button type="button" disabled=${act.busy} onClick=${() => act.run(queue.paused ? "resume" : "pause")}>${queue.paused ? "Resume" : "Pause"}</button>
        <button type="button" disabled=${!queue.waiting} onClick=${() => setOpen("move")}>Move or retry</button>
        <button type="button" class="bad" onClick=${() => setOpen("purge")}>Purge</button>
        <button type="button" class="bad" onClick=${() => setOpen("delete")}>Delete</button>
      </p>`}
      ${act.error && html`<${Failed} error=${act.error} />`}
      <p role="status" class="told">${told}</p>`}<//>
    <${Messages} path=${path} name=${name} turn=${turn} />
    ${open === "send" && html`<${Send} path=${path} onClose=${() => setOpen("")} onDone=${() => changed("The message is sent.")} />`}
    ${open === "move" && html`<${Move} path=${path} name=${name} onClose=${() => setOpen("")} onDone=${changed} />`}
    ${open === "purge" && html`<${Sure} title="Purge the queue" word=${name} verb="Purge" act=${() => act.run("purge")} onClose=${() => setOpen("")} onDone=${() => setOpen("")}><p>All messages that no consumer has are deleted. This cannot be undone.</p><//>`}
    ${open === "delete" && html`<${Sure} title="Delete the queue" word=${name} verb="Delete" act=${() => call("DELETE", path)} onClose=${() => setOpen("")} onDone=${() => go("/data/queues")}><p>It goes with its messages. A queue with a consumer cannot be deleted.</p><//>`}`;
}

/** Where messages can go. For a dead-letter queue the queues that its messages came from are first. */
function Move({ path, name, onClose, onDone }) {
  const query = useQuery((signal) => all("/api/queues", "queues", 1_000, { signal }), []);
  const [to, setTo] = useState("");
  const move = useAction((where) => call("POST", `${path}/move`, { to: where }));
  const start = async (where) => {
    const done = await move.run(where);
    if (done !== null) onDone(`${count(done.moved)} messages are in ${where} now.`);
  };
  return html`<${Dialog} title="Move messages" onClose=${onClose}>
    <p>Messages that are due go to another queue, as if they were sent there now. Dead letters are tried again in the queue they came from.</p>
    <${Loaded} query=${query}>${(queues) => {
      const others = queues.filter((each) => each.name !== name).sort((a, b) => Number(b.dead_letter_queue === name) - Number(a.dead_letter_queue === name));
      const chosen = to || others[0]?.name;
      if (!others.length) return html`<p>There is no other queue.</p>`;
      return html`<label>To <select value=${chosen} onChange=${(event) => setTo(event.target.value)}>
          ${others.map((each) => html`<option value=${each.name}>${each.name}${each.dead_letter_queue === name ? " (came from here)" : ""}</option>`)}
        </select></label>
        ${move.error && html`<${Failed} error=${move.error} />`}
        <p class="right"><button type="button" onClick=${onClose}>Cancel</button><button type="button" class="primary" disabled=${move.busy} onClick=${() => start(chosen)}>${move.busy ? "Moving…" : "Move"}</button></p>`;
    }}<//>
  <//>`;
}
