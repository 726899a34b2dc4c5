// The options of a step: how often it is tried again, after which delays, and how long an attempt may take.
import { durationOf } from "./durations.js";
import { WorkflowFatalError } from "./errors.js";

const DEFAULTS = { limit: 5, delay: 1000, backoff: "exponential" };
const DEFAULT_TIMEOUT = "10 minutes";
const BACKOFFS = ["constant", "linear", "exponential"];
export const SENSITIVE = "output";

const isObject = (value) => typeof value === "object" && value !== null;

/** The options as the step keeps them. `delay` may be a function. */
export function readConfig(given, name) {
  if (given !== undefined && !isObject(given)) throw new WorkflowFatalError(`The config of step "${name}" is not an object.`);
  const retries = { ...DEFAULTS, ...given?.retries };
  const config = { retries, timeout: given?.timeout ?? DEFAULT_TIMEOUT };
  if (given?.sensitive !== undefined) config.sensitive = given.sensitive;
  const { limit, delay, backoff } = retries;
  const refuse = (text) => {
    throw new WorkflowFatalError(`Invalid config of step "${name}": ${text}`);
  };
  if (typeof limit !== "number" || !(limit >= 0)) refuse("`retries.limit` must be a number that is not negative.");
  if (!BACKOFFS.includes(backoff)) refuse(`\`retries.backoff\` must be one of ${BACKOFFS.join(", ")}.`);
  if (typeof delay !== "function") durationOf(delay, `\`retries.delay\` of step "${name}"`);
  if (durationOf(config.timeout, `\`timeout\` of step "${name}"`) === 0) refuse("`timeout` must be longer than 0.");
  if (config.sensitive !== undefined && config.sensitive !== SENSITIVE) refuse('`sensitive` must be "output".');
  return config;
}

/** Milliseconds before the next attempt. */
export async function delayOf({ retries }, attempt, context, error, name) {
  const { delay, backoff } = retries;
  if (typeof delay === "function") return durationOf(await delay({ ctx: context, error }), `The result of \`retries.delay\` of step "${name}"`);
  const base = durationOf(delay, "`retries.delay`");
  const ms = backoff === "constant" ? base : backoff === "linear" ? base * attempt : base * 2 ** (attempt - 1);
  return Math.min(ms, durationOf("365 days", ""));
}

/** What is shown of the options. */
export function shownConfig({ retries, timeout, sensitive }) {
  const delay = typeof retries.delay === "function" ? "[dynamic]" : retries.delay;
  return JSON.stringify({ retries: { ...retries, delay }, timeout, sensitive });
}
