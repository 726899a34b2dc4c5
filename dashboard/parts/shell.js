// What is around every page: navigation, the search, the list of keys, who is logged in.
import { useEffect, useRef, useState } from "preact/hooks";
import { entries } from "#every-page";
import { all, call } from "../core/api.js";
import { html } from "../core/html.js";
import { useQuery } from "../core/query.js";
import { go, Link, route, workerPath } from "../core/router.js";
import { chooseTenant, known, tenant } from "../core/session.js";
import { Dialog, Text } from "./pieces.js";
import { Failed } from "./states.js";
import { nextTheme, theme } from "./theme.js";

const PLACES = [
  { path: "", key: "h", name: "Workers", is: ["", "workers"] },
  { path: "/data", key: "d", name: "Data", is: ["data"] },
  { path: "/routes", key: "r", name: "Routes", is: ["routes"] },
  { path: "/playground", key: "p", name: "Playground", is: ["playground"] },
  { path: "/manage", key: "m", name: "Manage", is: ["manage"] },
];
const KEYS = [
  ["/", "search workers and pages"],
  ["g h", "workers"],
  ["g d", "data"],
  ["g r", "routes"],
  ["g p", "playground"],
  ["g m", "what operators look after"],
  ["t", "light, dark or as the system"],
  ["?", "this list"],
  ["Esc", "close a window"],
];

const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;

export function Shell({ children }) {
  const [open, setOpen] = useState("");
  const led = useRef(false); // after the key g
  useEffect(() => {
    const press = (event) => {
      if (isTyping(event.target) || event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog")) return;
      const place = led.current && PLACES.find(({ key }) => key === event.key);
      led.current = event.key === "g";
      if (place) go(place.path || "/");
      else if (event.key === "/") setOpen("search");
      else if (event.key === "?") setOpen("keys");
      else if (event.key === "t") nextTheme();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const here = route.value.parts[0] ?? "";

  return html`<a class="skip" href="#main">To the content</a>
    <header class="top">
      <${Link} to="/" class="brand"><${Mark} />Atoll<//>
      <nav aria-label="Pages">
        ${PLACES.map(({ path, name, is }) => html`<${Link} to=${path || "/"} aria-current=${is.includes(here) ? "page" : undefined}>${name}<//>`)}
      </nav>
      <div class="tools">
        <button type="button" class="search" onClick=${() => setOpen("search")}><span>Search</span><kbd>/</kbd></button>
        <${TenantChoice} />
        <button type="button" class="quiet" onClick=${() => setOpen("me")} aria-haspopup="dialog"><${Text} most=${24}>${known.value.name}<//></button>
      </div>
    </header>
    <main id="main" tabindex="-1">${children}</main>
    <footer class="soft small">
      <span>Atoll ${known.value.version}</span>
      <button type="button" class="quiet" onClick=${nextTheme}>Theme: ${theme.value}</button>
      <button type="button" class="quiet" onClick=${() => setOpen("keys")}>Keys <kbd>?</kbd></button>
      <a href="/api">API</a>
    </footer>
    ${open === "search" && html`<${Search} onClose=${() => setOpen("")} />`}
    ${open === "keys" && html`<${Keys} onClose=${() => setOpen("")} />`}
    ${open === "me" && html`<${Me} onClose=${() => setOpen("")} />`}`;
}

const Mark = () => html`<svg class="mark" viewBox="0 0 24 24" aria-hidden="true">
  <circle cx="12" cy="12" r="8" /><circle cx="18.2" cy="6.6" r="2.4" class="islet" />
</svg>`;

function Keys({ onClose }) {
  return html`<${Dialog} title="Keys" onClose=${onClose}>
    <dl class="keys">${KEYS.map(([key, what]) => html`<div><dt>${key.split(" ").map((each) => html`<kbd>${each}</kbd> `)}</dt><dd>${what}</dd></div>`)}</dl>
    <p class="right"><button type="button" onClick=${onClose}>Close</button></p>
  <//>`;
}

function Me({ onClose }) {
  const me = known.value;
  const [error, setError] = useState(null);
  const leave = async () => {
    try {
      await call("DELETE", "/api/session");
      location.assign("/dashboard/");
    } catch (failed) {
      setError(failed);
    }
  };
  return html`<${Dialog} title="You" onClose=${onClose}>
    <dl class="facts">
      <div><dt>Token</dt><dd><${Text}>${me.name}<//></dd></div>
      <div><dt>Tenant</dt><dd><${Text}>${tenant.value}<//>${me.is_operator && " (operator: may choose any)"}</dd></div>
      <div><dt>Scopes</dt><dd>${me.scopes.join(", ")}</dd></div>
      <div><dt>Ends</dt><dd>${me.ends_at ? new Date(me.ends_at).toLocaleString("en-GB") : "never"}</dd></div>
    </dl>
    ${!me.is_session && html`<p class="soft">This node listens on this machine only, so nobody has to log in.</p>`}
    ${error && html`<${Failed} error=${error} />`}
    <p class="right">
      ${me.is_session && html`<button type="button" onClick=${leave}>Log out</button>`}
      <button type="button" onClick=${onClose}>Close</button>
    </p>
  <//>`;
}

function TenantChoice() {
  const isOperator = known.value.is_operator;
  const query = useQuery((signal) => (isOperator ? all("/api/tenants", "tenants", 1_000, { signal }) : Promise.resolve([])), [isOperator]);
  if (!isOperator || (query.data?.length ?? 0) < 2) return null;
  return html`<label class="tenant"><span class="hidden">Tenant</span>
    <select value=${tenant.value} onChange=${(event) => chooseTenant(event.target.value)}>
      ${query.data.map(({ name }) => html`<option value=${name}>${name}</option>`)}
    </select>
  </label>`;
}

function Search({ onClose }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const query = useQuery((signal) => all("/api/overview", "workers", 5_000, { signal }), []);
  const words = text.trim().toLowerCase();
  const places = [...PLACES, ...entries.map(({ at, name }) => ({ path: `/data/${at}`, name }))]
    .filter(({ name }) => name.toLowerCase().includes(words))
    .map(({ path, name }) => ({ to: path || "/", name, kind: "page" }));
  const workers = (query.data ?? [])
    .filter(({ name }) => name.toLowerCase().includes(words))
    .map(({ name }) => ({ to: workerPath(name), name, kind: "worker" }));
  const found = [...workers, ...places].slice(0, 12);
  const at = Math.min(chosen, Math.max(found.length - 1, 0));
  const open = (each) => {
    onClose();
    go(each.to);
  };
  const press = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setChosen((at + step + found.length) % Math.max(found.length, 1));
    else if (event.key === "Enter" && found[at]) open(found[at]);
    else return;
    event.preventDefault();
  };
  return html`<${Dialog} title="Search" onClose=${onClose}>
    <input
      type="search" autofocus role="combobox" aria-expanded="true" aria-controls="found" aria-label="Name of a worker or page"
      aria-activedescendant=${found.length ? `found-${at}` : undefined} autocomplete="off" spellcheck="false"
      value=${text} onInput=${(event) => (setText(event.target.value), setChosen(0))} onKeyDown=${press} />
    ${query.error && html`<${Failed} error=${query.error} again=${query.again} />`}
    <ul id="found" role="listbox" aria-label="Found" class="found">
      ${found.map((each, number) => html`<li id=${`found-${number}`} role="option" aria-selected=${number === at} onClick=${() => open(each)}>
        <${Text}>${each.name}<//><span class="soft">${each.kind}</span>
      </li>`)}
    </ul>
    <p class="soft small" role="status">${query.loading && !query.data ? "Loading…" : found.length ? "" : `Nothing is named like “${text}”.`}</p>
  <//>`;
}
