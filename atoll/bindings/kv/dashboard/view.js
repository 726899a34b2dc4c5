// The pages of KV: the namespaces, the keys of one, and one value. The address says which: /data/kv/NAMESPACE?key=KEY.
import { html } from "#dashboard/core/html.js";
import { route } from "#dashboard/core/router.js";
import { Ago } from "#dashboard/parts/pieces.js";
import { Resources } from "#dashboard/parts/things.js";
import { Keys } from "./keys.js";
import { Value } from "./value.js";

const COLUMNS = [{ name: "Created", of: ({ created_at }) => html`<${Ago} at=${created_at} />` }];

export function View({ rest: [namespace] }) {
  if (namespace === undefined) {
    return html`<${Resources} at="kv" path="/api/kv" field="namespaces" noun="namespace" columns=${COLUMNS} command=${`atoll kv create settings --api ${location.origin}`} />`;
  }
  const key = route.value.query.get("key");
  return key ? html`<${Value} key=${key} namespace=${namespace} name=${key} />` : html`<${Keys} namespace=${namespace} />`;
}
