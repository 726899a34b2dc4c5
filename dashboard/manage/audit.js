// Who changed what, newest first. Lines are of one tenant, or of all for operators.
import { get } from "../core/api.js";
import { time } from "../core/format.js";
import { html } from "../core/html.js";
import { useQuery } from "../core/query.js";
import { route, setQuery } from "../core/router.js";
import { Ago, Text } from "../parts/pieces.js";
import { Empty, Loaded } from "../parts/states.js";
import { cursorNow, PageTurn } from "../parts/things.js";

const PAGE = 100;

export function Audit() {
  const after = cursorNow();
  const typed = route.value.query.get("q") ?? "";
  const query = useQuery((signal) => get("/api/audit", { limit: PAGE, cursor: after }, { signal }), [after]);
  const fits = (line) => `${line.tenant} ${line.actor} ${line.action} ${line.target} ${line.detail}`.toLowerCase().includes(typed.toLowerCase());
  return html`<div class="bar"><input type="search" aria-label="Filter this page" placeholder="Filter this page" value=${typed} onInput=${(event) => setQuery({ q: event.target.value })} /><button type="button" onClick=${query.again}>Refresh</button></div>
    <${Loaded} query=${query}>${({ audit, cursor }) => {
      const rows = audit.filter(fits);
      return html`${rows.length === 0
        ? html`<${Empty} title=${typed ? "No line of this page has this in it" : "Nothing was changed yet"}>${typed && html`<p><button type="button" onClick=${() => setQuery({ q: "" })}>Show all</button></p>`}<//>`
        : html`<div class="cards audit"><table>
          <thead><tr><th scope="col">When</th><th scope="col">Who</th><th scope="col">What</th><th scope="col">Tenant</th><th scope="col">Of</th><th scope="col">Detail</th></tr></thead>
          <tbody>${rows.map((line) => html`<tr>
            <th scope="row"><time datetime=${line.timestamp} title=${time(line.timestamp)}><${Ago} at=${line.timestamp} /></time></th>
            <td data-label="Who"><${Text} most=${60}>${line.actor}<//></td><td data-label="What"><code>${line.action}</code></td><td data-label="Tenant"><${Text} most=${60}>${line.tenant}<//></td>
            <td data-label="Of"><${Text} most=${120}>${line.target}<//></td><td data-label="Detail" class="soft"><span><${Text} most=${200}>${line.detail}<//></span></td>
          </tr>`)}</tbody>
        </table></div>`}
        <${PageTurn} cursor=${cursor} />`;
    }}<//>`;
}
