// The address is the state: every view, filter and time range is in the URL, so links and the back button work.
import { signal } from "@preact/signals";
import { html } from "./html.js";

export const BASE = "/dashboard";

const read = () => ({
  parts: location.pathname.slice(BASE.length).split("/").filter(Boolean).map(decodeURIComponent),
  query: new URLSearchParams(location.search),
});

export const route = signal(read());

addEventListener("popstate", () => {
  route.value = read();
});

export function go(path, { replace = false } = {}) {
  const url = BASE + path;
  if (url === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", url);
  const before = route.value.parts.join("/");
  route.value = read();
  if (!replace && before !== route.value.parts.join("/")) {
    document.getElementById("main")?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
}

/** Change parameters of the present address. An empty value removes one. */
export function setQuery(changes, options = { replace: true }) {
  const query = new URLSearchParams(route.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === undefined) query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  const path = location.pathname.slice(BASE.length);
  go(text ? `${path}?${text}` : path, options);
}

export function Link({ to, children, ...rest }) {
  const follow = (event) => {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return html`<a href=${BASE + to} onClick=${follow} ...${rest}>${children}</a>`;
}

export const workerPath = (name, tab = "") => `/workers/${encodeURIComponent(name)}${tab && `/${tab}`}`;
