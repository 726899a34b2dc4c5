// What a service binding or a stub of a Durable Object has besides fetch(), by compatibility date.
import { isOn, whenFlagsAreSet } from "./compatibility.js";

let hasMethods = true; // those of the other worker, over RPC
let hasShortcuts = false; // get(), put() and delete() of fetchers before RPC
whenFlagsAreSet(() => {
  hasMethods = isOn("rpc");
  hasShortcuts = !isOn("fetcher_no_get_put_delete");
});

async function answerOf(fetcher, url, init) {
  const response = await fetcher.fetch(url, init);
  if (response.status === 404 || response.status === 410) return null;
  if (!response.ok) throw new Error(`HTTP ${init.method} request failed: ${response.status} ${response.statusText}`);
  return response;
}

const SHORTCUTS = {
  __proto__: null,
  async get(fetcher, url, type = "text") {
    const response = await answerOf(fetcher, url, { method: "GET" });
    if (response === null || type === "stream") return response?.body ?? null;
    return type === "json" ? response.json() : type === "arrayBuffer" ? response.arrayBuffer() : response.text();
  },
  put: async (fetcher, url, body) => void (await answerOf(fetcher, url, { method: "PUT", body })),
  delete: async (fetcher, url) => void (await answerOf(fetcher, url, { method: "DELETE" })),
};

/** A member that is not forwarded to the other worker: { value }; null if it is forwarded. */
export function ownMember(fetcher, key) {
  if (hasShortcuts && key in SHORTCUTS) return { value: (...args) => SHORTCUTS[key](fetcher, ...args) };
  return hasMethods ? null : { value: undefined };
}
