// The form of an entry: a new one, or a change of one. What is not changed stays byte for byte.
import { useState } from "preact/hooks";
import { at, call, get } from "#dashboard/core/api.js";
import { isJson, lineEnd, textOf } from "#dashboard/core/bytes.js";
import { bytes as sizeOf } from "#dashboard/core/format.js";
import { html } from "#dashboard/core/html.js";
import { useAction } from "#dashboard/core/query.js";
import { Dialog } from "#dashboard/parts/pieces.js";
import { Failed } from "#dashboard/parts/states.js";

const EDITED = 256 << 10; // bytes that a form can hold and stay quick
const RAW = "application/octet-stream";
const input = (set) => (event) => set(event.target.value);

/** `value` is what is stored, as { bytes, isCut, size }; without `name` the form is for a new key. */
export function Entry({ namespace, name = "", value = null, expiration = 0, metadata = "", onClose, onDone }) {
  const before = value && !value.isCut && value.size <= EDITED ? textOf(value.bytes) : null;
  const end = before === null ? "\n" : lineEnd(before);
  const canType = value === null || (before !== null && end !== null);
  const shown = (before ?? "").replaceAll("\r\n", "\n");
  const [key, setKey] = useState(name);
  const [text, setText] = useState(shown);
  const [file, setFile] = useState(null);
  const [ttl, setTtl] = useState("");
  const [until, setUntil] = useState(expiration ? "keep" : "never");
  const [note, setNote] = useState(metadata);
  const store = useAction(async () => {
    if (!name) await refuseTaken(namespace, key);
    const typed = text === shown && value ? value.bytes : text.replaceAll("\n", end ?? "\n");
    if (!file && value && !canType) throw new Error("Choose a file: this value cannot be typed.");
    const query = { metadata: note.trim(), ...(until === "keep" ? { expiration } : until === "in" ? { expiration_ttl: ttl } : {}) };
    const kept = new URLSearchParams(Object.entries(query).filter(([, each]) => each !== ""));
    await call("PUT", `${at`/api/kv/${namespace}/values/${key}`}?${kept}`, new Blob([file ?? typed], { type: RAW }), { timeout: 0 });
  });
  const submit = async (event) => {
    event.preventDefault();
    if ((await store.run()) !== null) onDone(key);
  };
  const wasJson = shown !== "" && isJson(shown);
  return html`<${Dialog} title=${name ? "Edit the value" : "New key"} onClose=${onClose}>
    <form onSubmit=${submit}>
      ${!name && html`<label>Key <input type="text" required maxlength="512" autofocus spellcheck="false" autocomplete="off" class="mono" value=${key} onInput=${input(setKey)} /></label>`}
      ${canType && !file && html`<label>Value <textarea class="mono" rows="10" spellcheck="false" autofocus=${Boolean(name)} value=${text} onInput=${input(setText)}></textarea></label>`}
      ${!canType && html`<p class="soft">${whyNot(value, before)} Replace it with a file.</p>`}
      ${wasJson && !file && !isJson(text) && html`<p class="warn-text" role="status">It was JSON, and is none now.</p>`}
      <label>${canType ? "Or take a file as the value" : "File"} <input type="file" onChange=${(event) => setFile(event.target.files[0] ?? null)} /></label>
      <div class="pair">
        <label>Expires <select value=${until} onChange=${input(setUntil)}>
          <option value="never">never</option>${expiration > 0 && html`<option value="keep">${new Date(expiration * 1_000).toLocaleString("en-GB")}</option>`}<option value="in">after some time</option>
        </select></label>
        ${until === "in" && html`<label>Seconds, at least 60 <input type="number" min="60" step="1" required value=${ttl} onInput=${input(setTtl)} /></label>`}
      </div>
      <label>Metadata, as JSON <input type="text" class="mono" spellcheck="false" autocomplete="off" placeholder="none" value=${note} onInput=${input(setNote)} /></label>
      ${store.error && html`<${Failed} error=${store.error} />`}
      <p class="right"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${store.busy}>${store.busy ? "Storing…" : "Save"}</button></p>
    </form>
  <//>`;
}

function whyNot(value, before) {
  if (value.size > EDITED) return `It is larger than ${sizeOf(EDITED)}.`;
  return before === null ? "It is not text." : "Its lines end in two ways, of which a form keeps one.";
}

/** A new key must not replace another silently. */
async function refuseTaken(namespace, key) {
  const { keys } = await get(at`/api/kv/${namespace}/keys`, { prefix: key, limit: 1 });
  if (keys[0]?.name === key) throw new Error("There is such a key already. Open it to change its value.");
}
