// A binding that Atoll does not have, as a worker sees it: env.NAME exists and throws when it is used. A worker that never
// uses it runs; one that does gets an error with the name of the binding, which undefined would not give.
import { defineBinding } from "#web/internal/bindings.js";

// The properties that the language and the console read of any object.
const HARMLESS = new Set(["then", "toJSON"]);

class MissingBinding {
  constructor(name) {
    const refuse = () => {
      throw new Error(
        `env.${name} cannot be used: Atoll has no such binding, and this worker was deployed without it ` +
          "(--allow-missing-bindings). `atoll doctor` lists what the project needs and what to use instead.",
      );
    };
    return new Proxy(this, {
      get: (target, key) => (typeof key === "symbol" || key in target || HARMLESS.has(key) ? target[key] : refuse()),
      set: refuse,
    });
  }
}

defineBinding("missing", MissingBinding);
