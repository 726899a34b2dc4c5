// Secrets store

/** A secret of a store, made with `atoll secrets-store secret create`. */
interface SecretsStoreSecret {
  /** The value as it is now. Rejects if the secret was deleted. */
  get(): Promise<string>;
}
