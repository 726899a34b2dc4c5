// Data of a view: asks once, again at intervals while the page is visible, and sooner after a failure. What was shown stays
// while newer data is on its way or cannot be had.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { known, tenant } from "./session.js";

const SLOW = 700; // ms after which a view says that it waits
const RETRIES = [1_000, 2_000, 5_000, 10_000];

/** `ask(signal)` gives a promise. Asks again when one of `keys` changes. */
export function useQuery(ask, keys, { every = 0 } = {}) {
  const [state, setState] = useState({ data: null, error: null, slow: false, loading: true });
  const latest = useRef(ask);
  latest.current = ask;
  const [turn, setTurn] = useState(0);
  const again = useCallback(() => setTurn((number) => number + 1), []);
  const place = JSON.stringify([...keys, tenant.value]);
  const shown = useRef(place);

  useEffect(() => {
    const control = new AbortController();
    let timer = 0;
    let failures = 0;
    const isOther = shown.current !== place;
    shown.current = place;
    setState((before) => ({ ...before, data: isOther ? null : before.data, error: null, loading: true }));

    const run = async () => {
      const slow = setTimeout(() => setState((before) => ({ ...before, slow: true })), SLOW);
      try {
        const data = await latest.current(control.signal);
        if (control.signal.aborted) return;
        failures = 0;
        setState({ data, error: null, slow: false, loading: false });
      } catch (error) {
        if (control.signal.aborted) return;
        setState((before) => ({ ...before, error, slow: false, loading: false }));
        if (error.status && error.status < 500 && error.status !== 429) return; // asking again would not help
        failures += 1;
      } finally {
        clearTimeout(slow);
      }
      const wait = failures ? RETRIES[Math.min(failures, RETRIES.length) - 1] : every;
      if (wait && !control.signal.aborted) timer = setTimeout(next, wait);
    };
    const next = () => {
      if (!document.hidden) run();
    };
    const wake = () => {
      clearTimeout(timer);
      next();
    };
    run();
    if (every) document.addEventListener("visibilitychange", wake);
    addEventListener("online", wake);
    return () => {
      control.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", wake);
      removeEventListener("online", wake);
    };
  }, [place, turn, every, known.value?.csrf]);

  return { ...state, again };
}

/** An act of the user: its state, and a function that starts it. */
export function useAction(act) {
  const [state, setState] = useState({ busy: false, error: null, done: null });
  const run = async (...args) => {
    setState({ busy: true, error: null, done: null });
    try {
      const done = await act(...args);
      setState({ busy: false, error: null, done: done ?? true });
      return done ?? true;
    } catch (error) {
      setState({ busy: false, error, done: null });
      return null;
    }
  };
  return { ...state, run, clear: () => setState({ busy: false, error: null, done: null }) };
}
