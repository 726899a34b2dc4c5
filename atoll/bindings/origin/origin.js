// The server behind a worker: env.ORIGIN.fetch(request) sends a request there. The other half is ops.py.
import { fetchFrom } from "#bindings/fetch/fetch.js";
import { defineBinding } from "#web/internal/bindings.js";
import { defineInterface } from "#web/internal/platform.js";
import { setOrigin } from "#web/worker/origin.js";

class OriginFetcher {
  #name;

  constructor(name) {
    this.#name = name;
    setOrigin((request) => fetchFrom(name, request, { redirect: "manual" }));
  }

  fetch(input, init = undefined) {
    return fetchFrom(this.#name, input, init);
  }
}

defineInterface(OriginFetcher, { name: "Fetcher", describe: () => ({}) });
defineBinding("origin", OriginFetcher);
