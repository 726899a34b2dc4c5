// One worker: its name, address and tabs around the view of a tab.
import { get, at } from "../core/api.js";
import { html } from "../core/html.js";
import { useQuery } from "../core/query.js";
import { Link, route, workerPath } from "../core/router.js";
import { may } from "../core/session.js";
import { Copy, Text } from "../parts/pieces.js";
import { Empty, Loaded } from "../parts/states.js";
import { Errors } from "./errors.js";
import { Live } from "./live.js";
import { Logs } from "./logs.js";
import { Overview } from "./overview.js";
import { Settings } from "./settings.js";
import { Versions } from "./versions.js";

const TABS = [
  { id: "", name: "Overview", view: Overview, scope: "read" },
  { id: "versions", name: "Versions", view: Versions, scope: "read" },
  { id: "live", name: "Live", view: Live, scope: "logs" },
  { id: "errors", name: "Errors", view: Errors, scope: "logs" },
  { id: "logs", name: "Logs", view: Logs, scope: "logs" },
  { id: "settings", name: "Settings", view: Settings, scope: "read" },
];

export function Worker() {
  const [, name, id = ""] = route.value.parts;
  const tab = TABS.find((each) => each.id === id);
  const query = useQuery((signal) => get(at`/api/workers/${name}`, {}, { signal }), [name], { every: 15_000 });
  if (!tab) return html`<${Empty} title="There is no such page" whole><p><${Link} to=${workerPath(name)}>To the worker<//></p><//>`;
  if (query.error?.status === 404) {
    return html`<${Empty} title="There is no such worker" whole><p>It may be deleted, or belong to another tenant. <${Link} to="/">All workers<//></p><//>`;
  }
  return html`<div class="page">
    <p class="crumb"><${Link} to="/">Workers<//></p>
    <div class="head">
      <h1><${Text}>${name}<//></h1>
      ${query.data && html`<p class="address"><a href=${query.data.url} target="_blank" rel="noopener noreferrer">${query.data.url}</a> <${Copy} text=${query.data.url} /></p>`}
    </div>
    <nav class="tabs" aria-label="Views of the worker">
      ${TABS.filter(({ scope }) => may(scope)).map((each) => html`<${Link} to=${workerPath(name, each.id)} aria-current=${each.id === id ? "page" : undefined}>${each.name}<//>`)}
    </nav>
    ${may(tab.scope)
      ? html`<${Loaded} query=${query}>${(worker) => html`<${tab.view} key=${name} worker=${worker} again=${query.again} />`}<//>`
      : html`<${Empty} title="Your token may not see this"><p>It needs the scope <code>${tab.scope}</code>.</p><//>`}
  </div>`;
}
