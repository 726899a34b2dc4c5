// Compatibility flags: a worker switches them on or off by name, or gets them by its compatibility date.
// https://developers.cloudflare.com/workers/configuration/compatibility-flags/
//
// An isolate learns its date and flags once, before any code of its worker runs. Code of the snapshot that runs for every request
// keeps what they mean for it in a variable, which it sets in a function given to `whenFlagsAreSet`. Lazy modules ask when they
// are loaded.
import { FLAGS } from "./switches.gen.js";

const NEWEST = "9999-12-31"; // of a worker without a date: it was not written for older behaviour

let date = NEWEST;
let flags = [];
const listeners = [];

/** `day` is yyyy-mm-dd. An unknown flag has no effect. */
export function setFlags(day, names) {
  date = day === "" ? NEWEST : day;
  flags = names ?? [];
  for (const listener of listeners) listener();
}

/** `listener` is called each time the date and flags are set: while the snapshot is made, and when an isolate gets its worker. */
export function whenFlagsAreSet(listener) {
  listeners.push(listener);
}

/** True if the worker switches the flag on, or its compatibility date does. `flag` is one that can be switched. */
export function isOn(flag) {
  const { off, since, with: company } = FLAGS[flag];
  if (off !== undefined && flags.includes(off)) return false;
  if (flags.includes(flag) || (since !== undefined && date >= since)) return true;
  return company !== undefined && date >= company.since && company.flags.some(isOn);
}

/** True if the worker names the flag itself. */
export function hasFlag(flag) {
  return flags.includes(flag);
}

/** Every flag and whether it is on. */
export function allFlags({ ON, OFF }) {
  const all = { __proto__: null };
  for (const name of Object.keys(FLAGS)) all[name] = isOn(name);
  for (const name of ON) all[name] = true;
  for (const name of OFF) all[name] = false;
  return Object.freeze(all);
}
