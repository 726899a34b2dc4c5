// A binding that Atoll does not have, as a worker sees it: env.NAME is there, and throws when it is used. A worker that
// never needs it runs; one that does learns which it was, where undefined would only say that it has no properties.
import { defineBinding } from "#web/internal/bindings.js";

// What the language and the console ask of any object, to find out what it is.
const HARMLESS = new Set(["then", "toJSON"]);

class MissingBinding {
  constructor(name) {
    const refuse = () => {
      throw new Error(
        `env.${name} cannot be used: Atoll has no such binding, and this worker was deployed without it ` +
          "(--allow-missing-bindings). `atoll doctor` tells what the project asks for, and what to use instead.",
      );
    };
    return new Proxy(this, {
      get: (target, key) => (typeof key === "symbol" || key in target || HARMLESS.has(key) ? target[key] : refuse()),
      set: refuse,
    });
  }
}

defineBinding("missing", MissingBinding);
