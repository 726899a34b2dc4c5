"""Cloudflare's compatibility flags: those that Atoll supports, and the findings about all others."""

from __future__ import annotations

import re

from atoll.manifests.config_fields import Finding, FindingLevel
from atoll.project.platform import platform

# Flags that change something here (web/worker/compatibility.js).
CHANGING = (
    "nodejs_compat",
    "no_nodejs_compat",
    "nodejs_compat_v2",
    "no_nodejs_compat_v2",
    "nodejs_compat_populate_process_env",
    "nodejs_compat_do_not_populate_process_env",
    "websocket_standard_binary_type",
    "no_websocket_standard_binary_type",
    "global_navigator",
    "no_global_navigator",
    "delete_all_deletes_alarm",
    "delete_all_preserves_alarm",
    "enable_ctx_exports",
    "disable_ctx_exports",
    "rpc_params_dup_stubs",
    "rpc_params_transfer_stubs",
    "enhanced_error_serialization",
    "legacy_error_serialization",
    "web_socket_auto_reply_to_close",
    "web_socket_manual_reply_to_close",
)
# Flags for what Atoll always does -> the flag that asks for the older behaviour, which Atoll does not have.
ALWAYS = {
    "nodejs_als": "no_nodejs_als",
    "streams_enable_constructors": "streams_disable_constructors",
    "transformstream_enable_standard_constructor": "transformstream_disable_standard_constructor",
    "url_standard": "url_original",
    "export_commonjs_default": "export_commonjs_namespace",
    "fetch_refuses_unknown_protocols": "fetch_treats_unknown_protocols_as_http",
    "formdata_parser_supports_files": "formdata_parser_converts_files_to_strings",
    "minimal_subrequests": "no_minimal_subrequests",
    "urlsearchparams_delete_has_value_arg": "no_urlsearchparams_delete_has_value_arg",
    "http_headers_getsetcookie": "no_http_headers_getsetcookie",
    "queues_json_messages": "no_queues_json_messages",
    "rpc": "no_rpc",
    "cache_option_enabled": "cache_option_disabled",
    "enable_weak_ref": "disable_weak_ref",
    "enable_request_signal": "disable_request_signal",
    "request_signal_passthrough": "no_request_signal_passthrough",
    "global_fetch_strictly_public": "global_fetch_private_origin",
    "strict_crypto_checks": "no_strict_crypto_checks",
}
# Flags for features that Atoll does not have and that a worker with the flag needs.
ABSENT = {
    "python_workers": "workers are JavaScript",
    "python_workers_development": "workers are JavaScript",
    "python_workflows": "workers are JavaScript",
    "enable_web_file_system": "there is no Web File System",
    "service_binding_extra_handlers": "service bindings have `fetch` and methods only",
    "streaming_tail_worker": "tail workers get records of finished calls",
    "rtti_api": "there is no module workerd:rtti",
    "unsafe_module": "there is no module workerd:unsafe",
    "allow_insecure_inefficient_logged_eval": "set `switches.allow_eval` in atoll.toml",
}
NODE_MODULE = re.compile(r"enable_nodejs_(\w+?)_modules?")


def finding_about_flag(flag: str) -> Finding | None:
    """The finding about a flag; None if Atoll supports it."""
    if flag in CHANGING or flag in ALWAYS:
        return None
    if flag in ABSENT:
        return _finding(FindingLevel.ERROR, f"`{flag}` is not supported: {ABSENT[flag]}")
    if (module := NODE_MODULE.fullmatch(flag)) is not None:
        name = f"node:{module[1].removesuffix('_server')}"
        return None if name in platform().modules else _finding(FindingLevel.ERROR, f"`{flag}`: there is no {name}")
    if flag in ALWAYS.values():
        return _finding(
            FindingLevel.WARNING, f"`{flag}` is ignored: it selects an older behaviour that Atoll does not have"
        )
    import difflib  # slow to import, and rarely needed

    known = [*CHANGING, *ALWAYS, *ALWAYS.values(), *ABSENT]
    close = difflib.get_close_matches(flag, known, n=1, cutoff=0.85)
    if close:
        return _finding(FindingLevel.WARNING, f"`{flag}` is not a known flag", f"did you mean `{close[0]}`?")
    return _finding(FindingLevel.NOTE, f"`{flag}` is not known to Atoll, so it has no effect")


def _finding(level: FindingLevel, text: str, hint: str = "") -> Finding:
    return Finding(level, "compatibility_flags", text, hint)
