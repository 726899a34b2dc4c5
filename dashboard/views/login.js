// The way in: a one-time code from `atoll dashboard`, or a token. Forms below stay as they are while a login is repeated.
import { useEffect, useState } from "preact/hooks";
import { call } from "../core/api.js";
import { html } from "../core/html.js";
import { useAction } from "../core/query.js";
import { session } from "../core/session.js";
import { Failed } from "../parts/states.js";

/** The code of the address, which is removed from it at once. */
function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

export const code = takeCode();

addEventListener("hashchange", () => {
  if (location.hash.startsWith("#code=")) location.reload(); // an address of `atoll dashboard`, pasted into an open page
});

export function Login({ again = false }) {
  const [token, setToken] = useState("");
  const login = useAction(async (body) => {
    session.value = await call("POST", "/api/session", body);
  });
  useEffect(() => {
    if (code && !again) login.run({ code });
  }, []);
  const submit = (event) => {
    event.preventDefault();
    login.run({ token });
  };
  return html`<section class="login">
    <h1>${again ? "Log in again" : "Atoll"}</h1>
    <p>${again ? "Your session has ended. What you typed is still there." : "Paste a token of this node, or let the command line log you in:"}</p>
    ${!again && html`<pre><code>atoll dashboard</code></pre>`}
    <form onSubmit=${submit}>
      <label for="token">Token</label>
      <input id="token" type="password" autocomplete="current-password" required autofocus spellcheck="false" value=${token} onInput=${(event) => setToken(event.target.value)} />
      <button type="submit" class="primary" disabled=${login.busy}>${login.busy ? "Logging in…" : "Log in"}</button>
    </form>
    ${login.error && html`<${Failed} error=${login.error} />`}
    <p class="soft small">The first start of a node leaves a token in its data folder, in <code>admin-token</code>. <code>atoll token create NAME --scope read</code> makes others.</p>
  </section>`;
}
