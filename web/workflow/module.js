// The module `cloudflare:workflows`: https://developers.cloudflare.com/workflows/build/workers-api/#nonretryableerror

/** Thrown in a step, it ends the retries of that step. */
export class NonRetryableError extends Error {
  constructor(message, name = "NonRetryableError") {
    super(message);
    this.name = name;
  }
}
