// Which host and path lead to which worker, and a tester for a URL.
import { useMemo, useState } from "preact/hooks";
import { all, get } from "../core/api.js";
import { html } from "../core/html.js";
import { useAction, useQuery } from "../core/query.js";
import { Link, route, setQuery, workerPath } from "../core/router.js";
import { Badge, More, Text } from "../parts/pieces.js";
import { Empty, Failed, Loaded } from "../parts/states.js";

const KINDS = { name: "own address", custom_domain: "whole host", route: "route" };

export function RoutesMap() {
  const query = useQuery((signal) => all("/api/routes", "routes", 10_000, { signal }), []);
  return html`<div class="page"><h1>Routes</h1>
    <${Tester} />
    <${Loaded} query=${query}>${(routes) => html`<${Table} routes=${routes} />`}<//>
  </div>`;
}

function Tester() {
  const [url, setUrl] = useState("");
  const match = useAction((text) => get("/api/routes/match", { url: text }));
  const submit = (event) => {
    event.preventDefault();
    match.run(url);
  };
  return html`<section class="tester">
    <form class="bar" onSubmit=${submit}>
      <label class="grow">Who answers a URL? <input type="url" required placeholder="https://shop.example/cart" value=${url} onInput=${(event) => setUrl(event.target.value)} /></label>
      <button type="submit" class="primary" disabled=${match.busy}>Ask</button>
    </form>
    ${match.error && html`<${Failed} error=${match.error} />`}
    <div role="status">${match.done && html`<p class="notice">
      ${match.done.worker
        ? html`<span><strong><${Link} to=${workerPath(match.done.worker)}><${Text}>${match.done.worker}<//><//></strong>, version ${match.done.version}${match.done.pattern && html`, by <code><${Text}>${match.done.pattern}<//></code>`}. ${match.done.reason}</span>`
        : html`<span><strong>No worker of this tenant.</strong> ${match.done.reason}</span>`}
    </p>`}</div>
  </section>`;
}

function Table({ routes }) {
  const words = (route.value.query.get("q") ?? "").toLowerCase();
  const rows = useMemo(() => routes.filter(({ pattern, worker }) => `${pattern} ${worker}`.includes(words)), [routes, words]);
  if (!routes.length) return html`<${Empty} title="No routes yet"><p>Every worker gets an address of its own when it is deployed.</p><pre tabindex="0"><code>atoll deploy</code></pre><//>`;
  return html`<div class="bar"><input type="search" aria-label="Filter by host, path or worker" placeholder="Filter by host, path or worker" value=${route.value.query.get("q") ?? ""} onInput=${(event) => setQuery({ q: event.target.value })} /></div>
    ${rows.length === 0 && html`<${Empty} title="No route has this in it"><p><button type="button" onClick=${() => setQuery({ q: "" })}>Show all</button></p><//>`}
    <${More} rows=${rows}>${(some) => some.length > 0 && html`<div class="cards"><table>
      <thead><tr><th scope="col">Pattern</th><th scope="col">Worker</th><th scope="col">Kind</th></tr></thead>
      <tbody>${some.map((each) => html`<tr><th scope="row"><code><${Text}>${each.pattern}<//></code></th><td data-label="Worker"><${Link} to=${workerPath(each.worker)}><${Text}>${each.worker}<//><//></td><td data-label="Kind"><${Badge}>${KINDS[each.kind]}<//></td></tr>`)}</tbody>
    </table></div>`}<//>`;
}
