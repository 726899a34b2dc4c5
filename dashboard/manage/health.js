// What of the node needs somebody: alerts that fire, room on the disk, the last backup; and a backup now.
import { useState } from "preact/hooks";
import { get } from "../core/api.js";
import { bytes, count, time } from "../core/format.js";
import { html } from "../core/html.js";
import { useQuery } from "../core/query.js";
import { may } from "../core/session.js";
import { Ago, Badge, Text } from "../parts/pieces.js";
import { Loaded } from "../parts/states.js";

const OLD = 2 * 86_400_000; // ms: a backup is thought to be made each day

export function Health() {
  const query = useQuery((signal) => get("/api/node/health", {}, { signal }), [], { every: 5_000 });
  return html`<${Loaded} query=${query}>${(health) => html`<${Alerts} alerts=${health.alerts} /><${Backup} health=${health} /><${Files} health=${health} />`}<//>`;
}

function Alerts({ alerts }) {
  return html`<section><h2>Alerts</h2>
    ${alerts.length === 0
      ? html`<p role="status"><${Badge} kind="good">all is well<//> No alert fires. The node asks itself every 15 seconds.</p>`
      : html`<div role="status"><ul class="plain">${alerts.map((each) => html`<li class="notice ${each.severity === "info" ? "" : "bad"}" key=${each.name}>
          <span><strong>${each.name}</strong> <${Badge} kind=${each.severity === "info" ? "" : "bad"}>${each.severity}<//><br /><${Text}>${each.summary}<//><br /><span class="soft small">since <${Ago} at=${each.since} />; what to do: <code>${each.runbook}</code></span></span>
        </li>`)}</ul></div>`}
  </section>`;
}

function Backup({ health }) {
  const [logs, setLogs] = useState(true);
  const [begun, setBegun] = useState(false);
  const { backup } = health;
  const isOld = !backup || Date.now() - Date.parse(backup.at) > OLD;
  return html`<section><h2>Backup</h2>
    ${!health.can_backup && html`<p>The data of this node is in PostgreSQL. Back it up with the tools of PostgreSQL, and keep a copy of the file <code>root-key</code>.</p>`}
    ${health.can_backup && html`
      <p>${backup ? html`The last one was taken <${Ago} at=${backup.at} /> (${time(backup.at)}) by <${Text}>${backup.by}<//>: ${bytes(backup.bytes)}.` : "None was taken yet."} ${isOld && html`<${Badge} kind="bad">${backup ? "old" : "none"}<//>`}</p>
      ${may("admin") && html`<p class="acts wide">
          <a class="button" href=${`/api/backup${logs ? "" : "?logs=false"}`} download onClick=${() => setBegun(true)}>Back up now</a>
          <label class="check"><input type="checkbox" checked=${logs} onChange=${(event) => setLogs(event.target.checked)} /> With the logs of workers</label>
        </p>
        <p class="soft small" role="status">${begun ? "The browser downloads a tar file. It holds secrets and the key to them: keep it safe." : ""}</p>`}
      <p class="soft small">Each day from a machine elsewhere:</p><pre tabindex="0"><code>atoll backup atoll.tar --api ${location.origin}</code></pre>`}
  </section>`;
}

function Files({ health }) {
  return html`<section><h2>Storage</h2>
    <dl class="facts"><div><dt>Free on the disk</dt><dd class=${health.disk_free_bytes !== null && health.disk_free_bytes < 5e9 ? "bad-text" : ""}>${bytes(health.disk_free_bytes)}</dd></div></dl>
    ${health.files.length > 0 && html`<div class="cards"><table>
      <thead><tr><th scope="col">File</th><th scope="col" class="number">Size</th><th scope="col" class="number">Failed operations</th></tr></thead>
      <tbody>${health.files.map((each) => html`<tr key=${each.file}><th scope="row"><code>${each.file}</code></th><td data-label="Size" class="number">${bytes(each.bytes)}</td><td data-label="Failed operations" class=${`number ${each.faults ? "bad-text" : ""}`}>${count(each.faults)}</td></tr>`)}</tbody>
    </table></div>`}
  </section>`;
}
