// https://nodejs.org/api/tracing.html: nothing is traced from within a worker.
import { codedError } from "./errors.js";
import { requireOptions, requireStrings } from "./validate.js";

class Tracing {
  #categories;
  #isEnabled = false;

  constructor(categories) {
    this.#categories = categories;
  }

  get categories() {
    return this.#categories.join(",");
  }

  get enabled() {
    return this.#isEnabled;
  }

  enable() {
    this.#isEnabled = true;
  }

  disable() {
    this.#isEnabled = false;
  }
}

export function createTracing(options) {
  requireOptions(options, "options");
  requireStrings(options.categories, "options.categories");
  if (options.categories.length === 0) throw codedError(TypeError, "ERR_TRACE_EVENTS_CATEGORY_REQUIRED", "At least one category is required");
  return new Tracing(options.categories);
}

export function getEnabledCategories() {
  return "";
}
