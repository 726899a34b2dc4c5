// Compatibility flags: a worker switches them on or off by name, or gets them by its compatibility date.
// https://developers.cloudflare.com/workers/configuration/compatibility-flags/

// flag -> the date from which it is on by default
const SINCE = {
  delete_all_deletes_alarm: "2026-02-24",
  nodejs_compat: "2026-08-04",
  websocket_standard_binary_type: "2026-03-17",
  enable_ctx_exports: "2025-11-17",
  rpc_params_dup_stubs: "2026-01-20",
  enhanced_error_serialization: "2026-04-21",
  web_socket_auto_reply_to_close: "2026-04-07",
};

// Flags that are on for a worker without a compatibility date: it was not written for older behaviour.
const ON_UNDATED = new Set([
  "enable_ctx_exports", "rpc_params_dup_stubs", "enhanced_error_serialization", "web_socket_auto_reply_to_close",
]);

// flag -> the name that switches it off, if it is not `no_` followed by the flag
const OPPOSITES = {
  delete_all_deletes_alarm: "delete_all_preserves_alarm",
  nodejs_compat_populate_process_env: "nodejs_compat_do_not_populate_process_env",
  enable_ctx_exports: "disable_ctx_exports",
  rpc_params_dup_stubs: "rpc_params_transfer_stubs",
  enhanced_error_serialization: "legacy_error_serialization",
  web_socket_auto_reply_to_close: "web_socket_manual_reply_to_close",
};

let date = "";
let flags = [];

/** `day` is yyyy-mm-dd. An unknown flag has no effect. */
export function setFlags(day, names) {
  date = day;
  flags = names ?? [];
}

/** True if the worker switches the flag off. */
export function isOff(flag) {
  return flags.includes(OPPOSITES[flag] ?? `no_${flag}`);
}

/** True if the worker switches the flag on, or its compatibility date does. */
export function isOn(flag) {
  if (isOff(flag)) return false;
  if (date === "" && ON_UNDATED.has(flag)) return true;
  return flags.includes(flag) || (SINCE[flag] !== undefined && date >= SINCE[flag]);
}
