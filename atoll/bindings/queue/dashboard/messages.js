// The messages of a queue. Looking at them changes nothing. And the form that sends one.
import { useState } from "preact/hooks";
import { call, getExact } from "#dashboard/core/api.js";
import { hexOf, isJson } from "#dashboard/core/bytes.js";
import { exactText } from "#dashboard/core/exact.js";
import { count, time } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { useAction, useQuery } from "#dashboard/core/query.js";
import { Ago, Badge, Copy, Dialog, Text } from "#dashboard/parts/pieces.js";
import { Empty, Failed, Loaded } from "#dashboard/parts/states.js";
import { cursorNow, PageTurn } from "#dashboard/parts/things.js";

const PAGE = 25; // a message has up to 128 KB

export function Messages({ path, name, turn }) {
  const after = cursorNow();
  const query = useQuery((signal) => getExact(`${path}/messages`, { limit: PAGE, cursor: after }, { signal }), [path, after, turn]);
  return html`<section><div class="head"><h2>Messages</h2><button type="button" class="quiet" onClick=${query.again}>Refresh</button></div>
    <${Loaded} query=${query}>${({ messages, cursor }) => html`
      ${messages.length === 0 && html`<${Empty} title="No message waits"><p>Workers send them with <code>env.NAME.send()</code>. From a terminal:</p><pre tabindex="0"><code>atoll queues send ${name} '{"hello": "world"}' --api ${location.origin}</code></pre><//>`}
      <div class="calls-list">${messages.map((each) => html`<${Message} key=${each.id} message=${each} />`)}</div>
      <${PageTurn} cursor=${cursor} />`}<//>
  </section>`;
}

function Message({ message: { id, content_type, body, sent_at, due_at, attempts, leased } }) {
  const isBinary = content_type === "bytes" || content_type === "v8";
  const text = isBinary ? hexOf(Uint8Array.from(atob(body), (each) => each.charCodeAt(0)), 1_024) : typeof body === "string" && content_type === "text" ? body : exactText(body, 2);
  const isLater = Date.parse(due_at) > Date.now();
  return html`<details class="call message">
    <summary>
      <span><${Ago} at=${sent_at} /></span>
      <span class="what"><${Badge}>${content_type}<//></span>
      <span class="mono path"><${Text} most=${160}>${isBinary ? text.slice(10, 58) : text.replace(/\s+/g, " ")}<//></span>
      <span class="number soft">${attempts ? `${count(attempts)} tries` : "not tried"}</span>
      <span class="said">${leased ? "at a consumer" : isLater ? html`due <${Ago} at=${due_at} />` : "due"}</span>
    </summary>
    <div class="inside">
      <pre class=${isBinary ? "value hex" : "value"} tabindex="0"><${Text} most=${140_000}>${text}<//></pre>
      ${content_type === "v8" && html`<p class="soft">The worker sent it in V8's own format, which only workers read.</p>`}
      <p class="soft small mono">${id}, sent ${time(sent_at)} <${Copy} text=${text} label="Copy body" /></p>
    </div>
  </details>`;
}

export function Send({ path, onClose, onDone }) {
  const [body, setBody] = useState("");
  const [type, setType] = useState("json");
  const [delay, setDelay] = useState("0");
  const isWrong = type === "json" && body !== "" && !isJson(body);
  const send = useAction(() => {
    // The body is put into the request as it was typed: parsing it would round large numbers.
    const raw = type === "json" ? body : JSON.stringify(body);
    const text = `{"messages":[{"content_type":${JSON.stringify(type)},"delay_seconds":${Number(delay)},"body":${raw}}]}`;
    return call("POST", `${path}/messages`, new Blob([text], { type: "application/json" }));
  });
  const submit = async (event) => {
    event.preventDefault();
    if (!isWrong && (await send.run()) !== null) onDone();
  };
  return html`<${Dialog} title="Send a message" onClose=${onClose}>
    <form onSubmit=${submit}>
      <label>Body <textarea class="mono" rows="8" required=${type === "json"} spellcheck="false" autofocus value=${body} onInput=${(event) => setBody(event.target.value)}></textarea></label>
      <p class="bad-text" role="status">${isWrong ? "This is not JSON." : ""}</p>
      <div class="pair">
        <label>Type <select value=${type} onChange=${(event) => setType(event.target.value)}><option value="json">JSON</option><option value="text">text</option></select></label>
        <label>Delay in seconds <input type="number" min="0" step="1" required value=${delay} onInput=${(event) => setDelay(event.target.value)} /></label>
      </div>
      ${send.error && html`<${Failed} error=${send.error} />`}
      <p class="right"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${send.busy || isWrong}>${send.busy ? "Sending…" : "Send"}</button></p>
    </form>
  <//>`;
}
