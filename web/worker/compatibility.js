// The behaviours a worker switches on and off by name, or by the day since which they are what everybody gets.
// https://developers.cloudflare.com/workers/configuration/compatibility-flags/

// flag -> the day since which it is on by default
const SINCE = { nodejs_compat: "2026-08-04", websocket_standard_binary_type: "2026-03-17" };

// flag -> the names that switch it off, where that is not `no_` and the flag
const OPPOSITES = { nodejs_compat_populate_process_env: "nodejs_compat_do_not_populate_process_env" };

let date = "";
let flags = [];

/** `day` is yyyy-mm-dd; a flag that nobody knows does nothing. */
export function setFlags(day, names) {
  date = day;
  flags = names ?? [];
}

/** True if the worker asks not to have it. */
export function isOff(flag) {
  return flags.includes(OPPOSITES[flag] ?? `no_${flag}`);
}

/** True if the worker asks to have it, or has it because of its date. */
export function isOn(flag) {
  if (isOff(flag)) return false;
  return flags.includes(flag) || (SINCE[flag] !== undefined && date >= SINCE[flag]);
}
