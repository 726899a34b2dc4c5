// env.NAME of static assets: the files of the worker's own version, by the same rules as for clients.
// https://developers.cloudflare.com/workers/static-assets/binding/
import { fetchFrom } from "#bindings/fetch/fetch.js";
import { defineBinding } from "#web/internal/bindings.js";

const HASHED = /^(.*)\.[0-9a-f]{10}((?:\.[^./]*)?)$/;
const READERS = { text: "text", json: "json", arrayBuffer: "arrayBuffer" };

/** The namespace of Workers Sites: like KV, read only. The key of a file is its path with a hash in it (project/site.py). */
// https://developers.cloudflare.com/workers/configuration/sites/
class SiteContent {
  #name;

  constructor(name) {
    this.#name = name;
  }

  async get(key, options = undefined) {
    const type = (typeof options === "string" ? options : options?.type) ?? "text";
    if (type !== "stream" && READERS[type] === undefined) throw new TypeError('Unknown response type. Possible types are "text", "arrayBuffer", "json", and "stream".');
    const [, head, end] = HASHED.exec(`${key}`) ?? [];
    if (head === undefined) return null;
    const path = `${head}${end}`.split("/").map(encodeURIComponent).join("/");
    const response = await fetchFrom(this.#name, `https://assets.local/${path}`);
    if (response.status !== 200) return null;
    return type === "stream" ? response.body : response[READERS[type]]();
  }

  async getWithMetadata(key, options = undefined) {
    return { value: await this.get(key, options), metadata: null, cacheStatus: null };
  }

  async list() {
    throw new TypeError("The files of a site cannot be listed: its manifest has their names.");
  }

  async put() {
    throw new TypeError("The files of a site are read-only: they belong to the deployed version.");
  }

  async delete() {
    return this.put();
  }
}

export class Assets {
  #name;

  constructor(name, facts = undefined) {
    if (facts?.asContent) return new SiteContent(name);
    this.#name = name;
  }

  fetch(input, init = undefined) {
    return fetchFrom(this.#name, input, init);
  }
}

defineBinding("assets", Assets);
