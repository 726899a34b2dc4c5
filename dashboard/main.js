// The dashboard: which view an address shows, and the login around all of them.
import { Component, render } from "preact";
import { useEffect } from "preact/hooks";
import { call } from "./core/api.js";
import { html } from "./core/html.js";
import { Link, route } from "./core/router.js";
import { known, session } from "./core/session.js";
import { Shell } from "./parts/shell.js";
import { lazy } from "./parts/lazy.js";
import { Empty } from "./parts/states.js";
import { applyTheme, theme } from "./parts/theme.js";
import { Data } from "./views/data.js";
import { Home } from "./views/home.js";
import { code, Login } from "./views/login.js";
import { RoutesMap } from "./views/routes.js";
import { Worker } from "./views/worker.js";

// Fetched when they are opened
const Manage = lazy(() => import("./manage/view.js"), "View");
const Playground = lazy(() => import("./playground/view.js"), "View");

const VIEWS = { "": Home, workers: Worker, data: Data, routes: RoutesMap, playground: Playground, manage: Manage };

/** A mistake in a view: said on the page, and never an empty one. */
class Fallback extends Component {
  componentDidCatch(error) {
    this.setState({ error });
  }

  render({ children }, { error }) {
    if (!error) return children;
    return html`<${Empty} title="This page has a mistake" whole>
      <p>${String(error.message)}</p>
      <p><button type="button" onClick=${() => location.reload()}>Load it again</button></p>
    <//>`;
  }
}

function App() {
  const me = session.value;
  const [first = "", second] = route.value.parts;
  const View = first === "workers" && !second ? Home : VIEWS[first];
  useEffect(() => {
    document.title = [second, first && first !== "workers" ? first : "", "Atoll"].filter(Boolean).join(" · ");
  }, [first, second]);
  if (!known.value) return html`<main id="main"><${Login} /></main>`;
  return html`${!me && html`<div class="over" role="dialog" aria-modal="true" aria-label="Log in again"><${Login} again /></div>`}
    <div inert=${!me}>
      <${Shell}>
        <${Fallback} key=${route.value.parts.join("/")}>
          ${View ? html`<${View} />` : html`<${Empty} title="There is no such page" whole><p><${Link} to="/">To the workers<//></p><//>`}
        <//>
      <//>
    </div>`;
}

async function start() {
  applyTheme(theme.value);
  if (code) {
    session.value = null; // the login shows, and uses the code
    known.value = null;
  } else if (session.value === null) {
    // A page that was opened by a link of another site came without the cookie; its own requests have it.
    session.value = await call("GET", "/api/session").catch(() => null);
  }
  const app = document.getElementById("app");
  app.replaceChildren();
  render(html`<${App} />`, app);
}

start();
