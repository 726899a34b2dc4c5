// What operators and owners of a tenant look after: the node, tenants, tokens, who did what, alerts and backups.
import { html } from "../core/html.js";
import { Link, route } from "../core/router.js";
import { known, may, tenant } from "../core/session.js";
import { Empty } from "../parts/states.js";
import { Audit } from "./audit.js";
import { Health } from "./health.js";
import { NodeNow } from "./node.js";
import { OneTenant, Tenants } from "./tenants.js";
import { Tokens } from "./tokens.js";

const isOperator = () => known.value.is_operator && may("read");
const TABS = [
  { at: "node", name: "Node", view: NodeNow, shown: isOperator },
  { at: "tenants", name: "Tenants", view: Tenants, shown: isOperator },
  { at: "usage", name: "Usage", view: () => html`<${OneTenant} name=${tenant.value} />`, shown: () => may("read") && !known.value.is_operator },
  { at: "health", name: "Health", view: Health, shown: isOperator },
  { at: "tokens", name: "Tokens", view: Tokens, shown: () => may("admin") },
  { at: "audit", name: "Audit log", view: Audit, shown: () => may("admin") },
];

export function View() {
  const tabs = TABS.filter(({ shown }) => shown());
  const [, at = tabs[0]?.at, one] = route.value.parts;
  const tab = tabs.find((each) => each.at === at);
  if (!tabs.length) return html`<${Empty} title="Your token may not see this" whole><p>It needs the scope <code>read</code> or <code>admin</code>.</p><//>`;
  if (!tab) return html`<${Empty} title="There is no such page, or your token may not see it" whole><p><${Link} to="/manage">Back<//></p><//>`;
  if (at === "tenants" && one !== undefined) {
    return html`<div class="page"><p class="crumb"><${Link} to="/manage/tenants">Tenants<//></p><${OneTenant} key=${one} name=${one} whole /></div>`;
  }
  return html`<div class="page"><h1>Manage</h1>
    <nav class="tabs" aria-label="What to manage">
      ${tabs.map((each) => html`<${Link} to=${`/manage/${each.at}`} aria-current=${each === tab ? "page" : undefined}>${each.name}<//>`)}
    </nav>
    <${tab.view} />
  </div>`;
}
