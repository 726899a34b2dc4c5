// A client certificate as a worker sees it: https://developers.cloudflare.com/workers/runtime-apis/bindings/mtls/
// fetch() of the binding is the platform's, and Python presents the certificate (ops.py).
import { fetchFrom } from "#bindings/fetch/fetch.js";
import { defineBinding } from "#web/internal/bindings.js";
import { defineInterface } from "#web/internal/platform.js";

class CertificateFetcher {
  #name;

  constructor(name) {
    this.#name = name;
  }

  fetch(input, init = undefined) {
    return fetchFrom(this.#name, input, init);
  }
}

defineInterface(CertificateFetcher, { name: "Fetcher", describe: () => ({}) });
defineBinding("mtls_certificate", CertificateFetcher);
