// What a stream of the node says last. It ends while the page is hidden, and begins again by itself.
import { useEffect, useState } from "preact/hooks";
import { events } from "../core/api.js";
import { known } from "../core/session.js";

const WAITS = [1_000, 2_000, 5_000, 10_000];

/** The state of a view, as of useQuery: `data` is that of the last `event`. */
export function useStream(path, event) {
  const [state, setState] = useState({ data: null, error: null, slow: false });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let control = null;
    let timer = 0;
    let failures = 0;
    const listen = async () => {
      if (document.hidden || control) return;
      const mine = (control = new AbortController());
      try {
        for await (const each of events(path, mine.signal)) {
          if (each.event !== event) continue;
          failures = 0;
          setState({ data: each.data, error: null, slow: false });
        }
      } catch (error) {
        if (mine.signal.aborted) return;
        setState((before) => ({ ...before, error }));
        if (error.status && error.status < 500 && error.status !== 429) return; // asking again would not help
      } finally {
        if (control === mine) control = null;
      }
      if (mine.signal.aborted) return;
      failures += 1;
      timer = setTimeout(listen, WAITS[Math.min(failures, WAITS.length) - 1]);
    };
    const leave = () => {
      clearTimeout(timer);
      control?.abort();
      control = null;
    };
    const turnUp = () => (document.hidden ? leave() : listen());
    listen();
    document.addEventListener("visibilitychange", turnUp);
    return () => {
      leave();
      document.removeEventListener("visibilitychange", turnUp);
    };
  }, [path, turn, known.value?.csrf]);
  return { ...state, again: () => setTurn((number) => number + 1) };
}
