// A view that is fetched when it is first shown: the first page stays small.
import { useEffect, useState } from "preact/hooks";
import { html } from "../core/html.js";
import { Failed, Loading } from "./states.js";

const LOST = { message: "This part of the dashboard could not be loaded.", hint: "The node may have been upgraded: load the page again.", status: 0 };

/** `load()` imports a module; `name` is the view that it exports. */
export function lazy(load, name) {
  let View = null;
  return function Lazy(props) {
    const [problem, setProblem] = useState(null);
    const [, setTurn] = useState(0);
    const fetchIt = async () => {
      setProblem(null);
      try {
        ({ [name]: View } = await load());
        setTurn((turn) => turn + 1);
      } catch {
        setProblem(LOST);
      }
    };
    useEffect(() => {
      if (!View) fetchIt();
    }, []);
    if (View) return html`<${View} ...${props} />`;
    return problem ? html`<${Failed} error=${problem} again=${fetchIt} />` : html`<${Loading} />`;
  };
}
