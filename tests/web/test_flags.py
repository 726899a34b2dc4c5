"""Compatibility flags in real isolates: each is off at an old date, on at today's, and on when it is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.running import Atoll

OLD = "2021-01-01"

# What a worker sees: flag -> [with the flag, without].
FACTS: dict[str, list[Any]] = {
    "formdata_parser_supports_files": ["object", "string"],
    "streams_enable_constructors": ["ok", "Error"],
    "transformstream_enable_standard_constructor": [["value"], [118, 97, 108, 117, 101]],
    "global_navigator": ["object", "undefined"],
    "http_headers_getsetcookie": [["function", 2], ["undefined", 1]],
    "urlsearchparams_delete_has_value_arg": [False, True],
    "strict_compression_checks": ["TypeError", "ok"],
    "crypto_preserve_public_exponent": ["Uint8Array", "ArrayBuffer"],
    "no_global_importscripts": ["undefined", "function"],
    "blob_standard_mime_type": ["text/plain;charset=UTF-8", "TEXT/plain; charset=UTF-8"],
    "cache_option_enabled": ["no-store", "Error"],
    "upper_case_all_http_methods": ["PATCH", "TypeError"],
    "enable_weak_ref": [["function", "function"], ["undefined", "undefined"]],
    "set_event_target_this": [True, False],
    "expose_global_message_channel": [["function", "function"], ["undefined", "undefined"]],
    "enhanced_error_serialization": ["C", None],
    "enable_ctx_exports": ["object", "undefined"],
    "fetch_iterable_type_support": ["ab", "[object Generator]"],
    "strip_bom_in_read_all_text": [1, 2],
    "websocket_close_reason_byte_limit": ["SyntaxError", "ok"],
    "websocket_standard_binary_type": ["blob", "arraybuffer"],
    "spec_compliant_dispatch_exceptions": ["ok", "Error"],
    "disallow_importable_env": [None, "hello"],
    "fetch_refuses_unknown_protocols": ["Fetch API cannot load: ftp://127.0.0.1/", "other"],
    "streams_no_default_auto_allocate_chunk_size": [None, 4096],
}
# Those that need another flag to be seen.
WITH = {
    "enable_navigator_language": ("global_navigator", ["string", "undefined"]),
    "cache_no_cache_enabled": ("cache_option_enabled", ["no-cache", "TypeError"]),
    "fetch_iterable_type_support_override_adjustment": ("fetch_iterable_type_support", ["own", "x"]),
    "enable_nodejs_global_timers": ("nodejs_compat", ["object", "number"]),
    "nodejs_compat_populate_process_env": ("nodejs_compat", ["hello", None]),
    "nodejs_process_version_24": ("nodejs_compat", ["v24", "v22"]),
}
# Not on by date.
UNDATED = {"disallow_importable_env", "streams_no_default_auto_allocate_chunk_size"}

SCRIPT = (Path(__file__).parent / "flags_worker.js").read_text("utf-8")


def seen(atoll: Atoll, flag: str) -> Any:
    reply = atoll.get("flags", f"/?flag={flag}")
    try:
        return reply.json
    except json.JSONDecodeError:
        return reply.text


def deploy(atoll: Atoll, date: str, *flags: str) -> None:
    modules = {"main.js": SCRIPT}
    env = {"TEXT": "hello"}
    atoll.deploy(
        "flags",
        main="main.js",
        modules=modules,
        env=env,
        limits={"cpu_ms": 5000},
        compatibility_date=date,
        compatibility_flags=list(flags),
    )


def test_flags_follow_the_date(atoll: Atoll) -> None:
    deploy(atoll, OLD, "streams_enable_constructors")
    for flag, (_, without) in FACTS.items():
        if flag != "streams_enable_constructors":
            assert seen(atoll, flag) == [without, False], flag
    deploy(atoll, "2026-11-17")
    everything = {**FACTS, **{flag: facts for flag, (_, facts) in WITH.items()}}
    for flag, facts in everything.items():
        if flag not in UNDATED and flag != "nodejs_process_version_24":
            assert seen(atoll, flag) == [facts[0], True], flag


def test_each_flag_alone_switches_its_behaviour(atoll: Atoll) -> None:
    deploy(atoll, OLD)
    assert seen(atoll, "streams_enable_constructors") == ["Error", False]
    for flag, (on, _) in FACTS.items():
        deploy(atoll, OLD, flag, "streams_enable_constructors")
        assert seen(atoll, flag) == [on, True], flag
    for flag, (other, (on, without)) in WITH.items():
        deploy(atoll, OLD, other)
        assert seen(atoll, flag) == [without, False], flag
        deploy(atoll, OLD, other, flag)
        assert seen(atoll, flag) == [on, True], flag


def test_an_opposite_switches_a_flag_off_whatever_the_date(atoll: Atoll) -> None:
    deploy(atoll, "2026-11-17", "no_global_navigator", "disable_weak_ref", "no_upper_case_all_http_methods")
    assert seen(atoll, "global_navigator") == ["undefined", False]
    assert seen(atoll, "enable_weak_ref") == [["undefined", "undefined"], False]
    assert seen(atoll, "upper_case_all_http_methods") == ["TypeError", False]
