// Tokens: who may do what. The text of a token is shown once, when it is made.
import { useState } from "preact/hooks";
import { all, at, call } from "../core/api.js";
import { html } from "../core/html.js";
import { useAction, useQuery } from "../core/query.js";
import { known, tenant } from "../core/session.js";
import { Ago, Badge, Copy, Dialog, More, Text } from "../parts/pieces.js";
import { Empty, Failed, Loaded } from "../parts/states.js";
import { Sure } from "../views/settings.js";

const MOST = 5_000;
const SCOPES = [
  ["read", "see workers, data and settings"],
  ["deploy", "change workers and data"],
  ["logs", "see calls, console lines and errors"],
  ["admin", "all of it, tokens too"],
];
const DAYS = [["1", "a day"], ["7", "a week"], ["30", "30 days"], ["365", "a year"], ["", "until it is revoked"]];

export function Tokens() {
  const query = useQuery((signal) => all("/api/tokens", "tokens", MOST, { signal }), []);
  const [open, setOpen] = useState(false);
  const [gone, setGone] = useState(null);
  const [told, setTold] = useState("");
  return html`<p class="acts"><button type="button" class="primary" onClick=${() => setOpen(true)}>New token</button></p>
    <p role="status" class="told"><${Text}>${told}<//></p>
    <${Loaded} query=${query}>${(tokens) => html`
      ${tokens.length === 0 && html`<${Empty} title="No token yet"><p>A token lets a program or a colleague in. From a terminal:</p><pre tabindex="0"><code>atoll token create NAME --scope deploy --api ${location.origin}</code></pre><//>`}
      <${More} rows=${tokens}>${(some) => some.length > 0 && html`<div class="cards"><table>
        <thead><tr><th scope="col">Name</th><th scope="col">Tenant</th><th scope="col">Scopes</th><th scope="col">Made</th><th scope="col">Used</th><th scope="col">Ends</th><th scope="col"><span class="hidden">Acts</span></th></tr></thead>
        <tbody>${some.map((each) => html`<tr key=${each.id}>
          <th scope="row"><${Text}>${each.name}<//></th>
          <td data-label="Tenant">${each.tenant === null ? html`<${Badge}>all tenants<//>` : html`<${Text}>${each.tenant}<//>`}</td>
          <td data-label="Scopes">${each.scopes.join(", ")}</td><td data-label="Made"><${Ago} at=${each.created_at} /></td>
          <td data-label="Used">${each.used_at ? html`<${Ago} at=${each.used_at} />` : html`<span class="soft">never</span>`}</td>
          <td data-label="Ends">${each.expires_at ? html`<${Ago} at=${each.expires_at} />` : html`<span class="soft">never</span>`}</td>
          <td class="right"><button type="button" class="quiet bad-text" onClick=${() => setGone(each)}>Revoke<span class="hidden"> <${Text}>${each.name}<//></span></button></td>
        </tr>`)}</tbody>
      </table></div>`}<//>`}<//>
    ${open && html`<${Make} onClose=${() => setOpen(false)} again=${query.again} />`}
    ${gone && html`<${Sure} title="Revoke a token" word=${gone.name} verb="Revoke" act=${() => call("DELETE", at`/api/tokens/${gone.id}`)} onClose=${() => setGone(null)} onDone=${() => (setTold(`${gone.name} is revoked.`), setGone(null), query.again())}><p>It stops to work at once, and so do its sessions.</p><//>`}`;
}

function Make({ onClose, again }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState(["deploy"]);
  const [days, setDays] = useState("30");
  const [isForAll, setForAll] = useState(false);
  const make = useAction(async () => {
    const made = await call("POST", "/api/tokens", { name, scopes, all_tenants: isForAll, ...(days && { expires_in: Number(days) * 86_400 }) });
    again();
    return made;
  });
  const submit = (event) => {
    event.preventDefault();
    make.run();
  };
  const choose = (scope, isOn) => setScopes(isOn ? [...scopes, scope] : scopes.filter((each) => each !== scope));
  if (make.done) {
    return html`<${Dialog} title="The new token" onClose=${onClose}>
      <p>Keep it now: it is shown only this once.</p>
      <pre tabindex="0" class="token"><code>${make.done.token}</code></pre>
      <p class="right"><${Copy} text=${make.done.token} /><button type="button" class="primary" onClick=${onClose}>I have it</button></p>
    <//>`;
  }
  return html`<${Dialog} title="A new token" onClose=${onClose}>
    <form onSubmit=${submit}>
      <label>Name <input type="text" required maxlength="100" autofocus autocomplete="off" spellcheck="false" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
      <fieldset class="field"><legend>It may</legend>${SCOPES.map(([scope, what]) => html`<label class="check" key=${scope}><input type="checkbox" checked=${scopes.includes(scope)} onChange=${(event) => choose(scope, event.target.checked)} /><span><code>${scope}</code> <span class="soft">${what}</span></span></label>`)}</fieldset>
      <label>It lasts <select value=${days} onChange=${(event) => setDays(event.target.value)}>${DAYS.map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select></label>
      ${known.value.is_operator && html`<label class="check"><input type="checkbox" checked=${isForAll} onChange=${(event) => setForAll(event.target.checked)} /> For all tenants, as an operator</label>`}
      ${!isForAll && html`<p class="soft">It is for the tenant <strong><${Text}>${tenant.value}<//></strong>.</p>`}
      ${make.error && html`<${Failed} error=${make.error} />`}
      <p class="right"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${make.busy || !scopes.length}>${make.busy ? "Making…" : "Make it"}</button></p>
    </form>
  <//>`;
}
