// A secret of a secrets store: https://developers.cloudflare.com/secrets-store/integrations/workers/. The other half is ops.py.
import { defineBinding } from "#web/internal/bindings.js";
import { defineOp } from "#web/internal/ops.js";
import { defineInterface } from "#web/internal/platform.js";

const get = defineOp("secrets_store_secret.get");

export class SecretsStoreSecret {
  #name;

  constructor(name) {
    this.#name = name;
  }

  async get() {
    const { meta } = await get({ binding: this.#name });
    if (meta.value === null) throw new Error(`Secret "${meta.name}" not found`);
    return meta.value;
  }
}

defineInterface(SecretsStoreSecret, { describe: () => ({}) });
defineBinding("secrets_store_secret", SecretsStoreSecret);
