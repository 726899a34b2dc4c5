"""The record of a call as tail workers and `wrangler tail` receive it."""

from __future__ import annotations

from typing import Any

import msgspec

from atoll.logs import Invocation
from atoll.redact import MAX_HEADERS, MAX_URL, redacted_headers, redacted_url
from atoll.wire.generated import OUTCOME_NAMES, Level


def trace_item(record: Invocation) -> dict[str, Any]:
    """https://developers.cloudflare.com/workers/runtime-apis/handlers/tail/#tailitems, as JSON."""
    version, failure = record.version, record.failure
    started = int(record.started_at * 1000)
    exceptions = []
    if failure is not None:
        name, ended = failure.name or failure.code.name, started + record.wall_us // 1000
        exceptions = [{"timestamp": ended, "name": name, "message": failure.message, "stack": failure.stack}]
    return {
        "event": _event(record),
        "eventTimestamp": started,
        "logs": [
            {"timestamp": int(line.timestamp_ms), "level": Level(line.level).name.lower(), "message": [line.text]}
            for line in record.logs
        ],
        "exceptions": exceptions,
        "diagnosticsChannelEvents": [],
        "scriptName": version.worker_name,
        "entrypoint": record.entrypoint or None,
        "scriptVersion": {"id": version.id, "tag": version.tag or None},
        "scriptTags": [],
        "durableObjectId": None,
        "outcome": OUTCOME_NAMES[record.outcome],
        "executionModel": "stateless",
        "truncated": record.truncated,
        "cpuTime": record.cpu_us / 1000,
        "wallTime": record.wall_us / 1000,
    }


def _event(record: Invocation) -> dict[str, Any]:
    address, _, block = record.head.partition(b"\n")
    method, _, url = address.decode("latin-1").partition(" ")
    if record.event != "fetch":
        field = _WORDS.get(record.event)
        if record.event == "rpc":
            url = url.rpartition(".")[2]  # the part after the entry point, which the item has in its own field
        return {"type": record.event} | ({field: url} if field else {}) | _told(record.event, block)
    return {
        "type": record.event,
        "request": {
            "method": method,
            "url": redacted_url(url),
            "headers": redacted_headers(block),
            "cf": {},
            "unredacted": {"url": url[:MAX_URL], "headers": _headers(block)},
        },
        "response": {"status": record.status} if record.status else None,
    }


# The field for the text after the event's name in its log label
_WORDS = {"scheduled": "cron", "queue": "queue", "rpc": "rpcMethod"}


def _told(event: str, meta: bytes) -> dict[str, Any]:
    """Further fields, from the meta of an event."""
    if event == "scheduled":
        return {"scheduledTime": msgspec.json.decode(meta)["scheduledTime"]}
    if event == "queue":
        return {"batchSize": len(msgspec.json.decode(meta)["messages"])}
    return {}


def _headers(block: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in block[:MAX_HEADERS].decode("latin-1").split("\r\n"):
        name, found, value = line.partition(":")
        if found:
            headers[name.lower()] = value.strip(" \t")
    return headers
