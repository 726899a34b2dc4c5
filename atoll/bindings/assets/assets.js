// env.NAME of static assets: the files of the worker's own version, by the same rules as for clients.
// https://developers.cloudflare.com/workers/static-assets/binding/
import { fetchFrom } from "#bindings/fetch/fetch.js";
import { defineBinding } from "#web/internal/bindings.js";

export class Assets {
  #name;

  constructor(name) {
    this.#name = name;
  }

  fetch(input, init = undefined) {
    return fetchFrom(this.#name, input, init);
  }
}

defineBinding("assets", Assets);
