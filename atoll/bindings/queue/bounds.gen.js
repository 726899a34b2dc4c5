// Bounds that both halves of the binding check. Written from bounds.toml: run `make wire`.
export const MAX_DELAY = 86400;
