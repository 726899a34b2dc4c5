// A value of a tenant on a page: as text, JSON, hex or a picture. Nothing of it becomes markup, and pictures run no code: they are
// shown from memory by <img>, with the type that their first bytes say.
import { useEffect, useMemo, useState } from "preact/hooks";
import { chosenTenant, known } from "../core/session.js";
import { send } from "../core/api.js";
import { hexOf, indented, isJson, looksBinary, pictureType, textOf } from "../core/bytes.js";
import { bytes as sizeOf, visible } from "../core/format.js";
import { html } from "../core/html.js";
import { useAction } from "../core/query.js";
import { Failed } from "./states.js";

export const READ = 1 << 20; // bytes of a value that are read to be shown
const SHOWN = 64 << 10; // characters on the page

/** The first bytes of a value, and its headers. The rest is not fetched. */
export async function readStart(path, signal, most = READ) {
  const response = await send("GET", path, { signal });
  const reader = response.body.getReader();
  const pieces = [];
  let size = 0;
  let isCut = false;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    size += value.length;
    if (size > most) {
      isCut = true;
      reader.cancel();
      break;
    }
  }
  const bytes = new Uint8Array(await new Blob(pieces).arrayBuffer()).subarray(0, most);
  return { bytes, isCut, size: Number(response.headers.get("content-length") ?? size), headers: response.headers };
}

const NAMES = { text: "Text", json: "JSON", picture: "Picture", hex: "Hex" };

export function Bytes({ bytes, isCut, size }) {
  const found = useMemo(() => {
    const text = textOf(bytes, isCut);
    const picture = isCut ? "" : pictureType(bytes);
    const json = !isCut && text !== null && /^\s*[{["]/.test(text) && isJson(text);
    return { text, picture, kinds: [json && "json", text !== null && "text", picture && "picture", "hex"].filter(Boolean), json };
  }, [bytes]);
  const usual = found.picture ? "picture" : found.json ? "json" : found.text !== null && !looksBinary(found.text) ? "text" : "hex";
  const [chosen, choose] = useState("");
  const kind = found.kinds.includes(chosen) ? chosen : usual;
  return html`<div class="bytes">
    <div class="bar"><div class="choice" role="group" aria-label="Show as">
      ${found.kinds.map((each) => html`<button type="button" aria-pressed=${each === kind} onClick=${() => choose(each)}>${NAMES[each]}</button>`)}
    </div><span class="soft">${sizeOf(size)}</span></div>
    ${bytes.length === 0 && html`<p class="soft">The value is empty.</p>`}
    ${kind === "picture"
      ? html`<${Picture} bytes=${bytes} type=${found.picture} />`
      : bytes.length > 0 && html`<${Shown} key=${kind} text=${kind === "hex" ? hexOf(bytes) : kind === "json" ? indented(found.text) : found.text} isHex=${kind === "hex"} />`}
    ${isCut && html`<p class="soft">Only the first ${sizeOf(bytes.length)} of ${sizeOf(size)} are here. Download it to see the rest.</p>`}
    ${kind === "hex" && bytes.length > 4_096 && html`<p class="soft">These are the first 4,096 bytes.</p>`}
  </div>`;
}

function Shown({ text, isHex }) {
  const [most, setMost] = useState(SHOWN);
  return html`<pre class=${isHex ? "value hex" : "value"} tabindex="0" aria-label="Value"><code>${visible(text.slice(0, most))}</code></pre>
    ${text.length > most && html`<p class="more"><button type="button" onClick=${() => setMost(most * 4)}>Show more of ${text.length.toLocaleString("en")} characters</button></p>`}`;
}

function Picture({ bytes, type }) {
  const [url, setUrl] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes, type]);
  return url && html`<div class="picture"><img src=${url} alt="The value as a picture" /></div>`;
}

/** A file to keep. The node sends it with a header that says so: no browser shows it as a page of this host. */
export function Download({ path, name, method = "GET" }) {
  const me = known.value;
  const isOther = method !== "GET" || (me.is_operator && chosenTenant.value && chosenTenant.value !== me.tenant);
  const fetched = useAction(async () => {
    const response = await send(method, path, { timeout: 0 });
    save(await response.blob(), name);
  });
  if (!isOther) return html`<a class="button" href=${path} download=${name}>Download</a>`;
  // A link sends no header that names the tenant, so the page fetches the file itself.
  return html`<button type="button" disabled=${fetched.busy} onClick=${fetched.run}>${fetched.busy ? "Fetching…" : "Download"}</button>
    ${fetched.error && html`<${Failed} error=${fetched.error} />`}`;
}

export function save(blob, name) {
  const url = URL.createObjectURL(new Blob([blob], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** The last part of a key as the name of a file. */
export const fileName = (key) => visible(key.split("/").filter(Boolean).at(-1) ?? "value").slice(-120);
