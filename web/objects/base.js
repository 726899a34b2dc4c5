/** The base class of Durable Objects: https://developers.cloudflare.com/durable-objects/api/base/ */
export class DurableObject {
  constructor(ctx, env) {
    this.ctx = ctx;
    this.env = env;
  }
}

/** A class whose objects have methods that workers may call. */
export function isObjectClass(target) {
  return typeof target === "function" && target.prototype instanceof DurableObject;
}
