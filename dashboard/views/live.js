// The calls of a worker as they happen. New ones wait while the list is paused; the newest KEPT stay.
import { useEffect, useRef, useState } from "preact/hooks";
import { at, events } from "../core/api.js";
import { html } from "../core/html.js";
import { route, setQuery } from "../core/router.js";
import { chosenTenant } from "../core/session.js";
import { Call, isBad } from "../parts/call.js";
import { Empty, Failed } from "../parts/states.js";

const KEPT = 500;
const PACE = 250; // ms between two pictures
const WAITS = [1_000, 2_000, 5_000, 10_000];
const OUTCOMES = ["ok", "exception", "exceededCpu", "exceededMemory", "exceededWallTime", "canceled", "loadShed", "internalError"];

let number = 0;

export function Live({ worker }) {
  const { query } = route.value;
  const filter = { outcome: query.get("outcome") ?? "", text: query.get("text") ?? "", method: query.get("method") ?? "", show: query.get("show") ?? "" };
  const [rows, setRows] = useState([]);
  const [missed, setMissed] = useState(0);
  const [state, setState] = useState({ is: "connecting", error: null });
  const [paused, setPaused] = useState(false);
  const isPaused = useRef(false);
  isPaused.current = paused;
  const waiting = useRef([]);
  const [held, setHeld] = useState(0);

  useEffect(() => {
    const show = () => {
      if (isPaused.current) {
        setHeld(waiting.current.length);
        return;
      }
      if (!waiting.current.length) return;
      const some = waiting.current.splice(0).reverse();
      setRows((before) => [...some, ...before].slice(0, KEPT));
    };
    const timer = setInterval(show, PACE);
    return () => clearInterval(timer);
  }, []);

  useEffect(() => {
    const control = new AbortController();
    let failures = 0;
    const listen = async () => {
      const search = new URLSearchParams(Object.entries({ outcome: filter.outcome, text: filter.text }).filter(([, value]) => value));
      while (!control.signal.aborted) {
        try {
          setState({ is: "connecting", error: null });
          const stream = events(`${at`/api/workers/${worker.name}/logs/live`}?${search}`, control.signal);
          setState({ is: "open", error: null });
          for await (const { event, data } of stream) {
            failures = 0;
            if (event === "dropped") setMissed((before) => before + data.count);
            if (event !== "invocation") continue;
            waiting.current.push({ entry: data, key: (number += 1) });
            if (waiting.current.length > KEPT) waiting.current.shift();
          }
          setState({ is: "closed", error: null });
        } catch (error) {
          if (control.signal.aborted) return;
          setState({ is: "broken", error });
          if (error.status && error.status < 500 && error.status !== 429) return;
        }
        failures += 1;
        await new Promise((done) => setTimeout(done, WAITS[Math.min(failures, WAITS.length) - 1]));
      }
    };
    listen();
    return () => control.abort();
  }, [worker.name, filter.outcome, filter.text, chosenTenant.value]);

  const fits = ({ entry }) => (!filter.method || entry.method === filter.method) && (filter.show !== "bad" || isBad(entry));
  const shown = rows.filter(fits);
  const STATES = { connecting: "Connecting…", open: "Listening", closed: "The node has ended the stream. Connecting again…", broken: "Not connected" };
  return html`<div class="bar">
      <button type="button" class=${paused ? "primary" : ""} aria-pressed=${paused} onClick=${() => setPaused(!paused)}>${paused ? `Continue${held ? ` (${held} new)` : ""}` : "Pause"}</button>
      <button type="button" onClick=${() => (setRows([]), setMissed(0))} disabled=${!rows.length}>Clear</button>
      <input type="search" aria-label="Text in a console line or error" placeholder="Text in lines or errors" value=${filter.text} onChange=${(event) => setQuery({ text: event.target.value })} />
      <label>Outcome <select value=${filter.outcome} onChange=${(event) => setQuery({ outcome: event.target.value })}>
        <option value="">any</option>${OUTCOMES.map((each) => html`<option>${each}</option>`)}
      </select></label>
      <label>Method <select value=${filter.method} onChange=${(event) => setQuery({ method: event.target.value })}>
        <option value="">any</option>${["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"].map((each) => html`<option>${each}</option>`)}
      </select></label>
      <label class="check"><input type="checkbox" checked=${filter.show === "bad"} onChange=${(event) => setQuery({ show: event.target.checked ? "bad" : "" })} />Errors only</label>
    </div>
    <p class="soft small" role="status"><i class=${`dot ${state.is}`}></i>${STATES[state.is]}${shown.length ? `. ${shown.length} calls shown` : ""}${missed ? `. ${missed.toLocaleString("en")} more came too fast to show` : ""}</p>
    ${state.error && html`<${Failed} error=${state.error} again=${null} />`}
    ${shown.length === 0 && state.is === "open" && html`<${Empty} title="Waiting for a call">
      <p>Calls appear here as they happen. Make one:</p><pre tabindex="0"><code>curl ${worker.url}</code></pre>
    <//>`}
    <div class="calls-list">${shown.map(({ entry, key }) => html`<${Call} key=${key} entry=${entry} worker=${worker} />`)}</div>`;
}
