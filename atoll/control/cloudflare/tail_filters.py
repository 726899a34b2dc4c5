"""The filters of `wrangler tail`, and the items that it receives."""

from __future__ import annotations

import ipaddress
import random
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from atoll.api.cloudflare import CloudflareRefusal
from atoll.api.refusals import refuse_many
from atoll.control.cloudflare.ids import version_uuid
from atoll.logs import Invocation
from atoll.observe.records import LogEntry, says
from atoll.trace_items import trace_item

BAD_FILTER = 10026
MAX_FILTERS = 20
MAX_CHOICES = 50
# Outcomes that have a name of their own in Cloudflare's filters
NAMED = ("ok", "exception", "exceededCpu", "exceededMemory", "canceled")


class WantedHeader(Struct):
    key: str
    query: str | None = None


class TailFilter(Struct, rename={"script_version": "scriptVersion"}):
    """One filter: wrangler sets one field of each. A record must pass all of them."""

    sampling_rate: float | UnsetType = UNSET
    outcome: list[str] | UnsetType = UNSET
    method: list[str] | UnsetType = UNSET
    header: WantedHeader | UnsetType = UNSET
    client_ip: list[str] | UnsetType = UNSET
    query: str | UnsetType = UNSET
    script_version: str | UnsetType = UNSET


class WantedTail(Struct):
    filters: list[TailFilter] = []


def filters_of(wanted: WantedTail, client: str) -> list[TailFilter]:
    """The checked filters. `self` in client_ip is the address of the client that asks for the tail."""
    refuse_many("filters", wanted.filters, MAX_FILTERS)
    for each in wanted.filters:
        for name in ("outcome", "method", "client_ip"):
            choices = getattr(each, name)
            if choices is not UNSET:
                refuse_many(name, choices, MAX_CHOICES)
        if each.sampling_rate is not UNSET and not 0 <= each.sampling_rate <= 1:
            raise CloudflareRefusal(400, BAD_FILTER, f"`sampling_rate` is {each.sampling_rate}, not from 0 to 1")
        if each.method is not UNSET:
            each.method = [method.upper() for method in each.method]
        if each.header is not UNSET:
            each.header = WantedHeader(each.header.key.lower(), each.header.query)
        if each.client_ip is not UNSET:
            each.client_ip = [_address(client if text == "self" else text) for text in each.client_ip]
    return wanted.filters


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise CloudflareRefusal(400, BAD_FILTER, f"`client_ip` has {text[:80]!r}, which is no address") from None


def picks(wanted: TailFilter, item: dict[str, Any], entry: LogEntry) -> bool:
    """Whether a record passes a filter. Only redacted values are compared: a filter must not find out a credential."""
    request = item["event"].get("request") if item["event"] else None
    headers: dict[str, str] = request["headers"] if request is not None else {}
    if wanted.sampling_rate is not UNSET and random.random() >= wanted.sampling_rate:
        return False
    if wanted.outcome is not UNSET:
        outcome = item["outcome"] if item["outcome"] in NAMED else "unknown"
        if outcome not in wanted.outcome and item["outcome"] not in wanted.outcome:
            return False
    if wanted.method is not UNSET and (request is None or request["method"] not in wanted.method):
        return False
    if wanted.header is not UNSET:
        value = headers.get(wanted.header.key)
        if value is None or (wanted.header.query or "") not in value:
            return False
    if wanted.client_ip is not UNSET and headers.get("cf-connecting-ip") not in wanted.client_ip:
        return False
    if wanted.script_version is not UNSET and item["scriptVersion"]["id"] != wanted.script_version:
        return False
    return wanted.query is UNSET or says(entry, wanted.query)


def traced(record: Invocation) -> dict[str, Any]:
    """A record as tail workers receive it, without what only they may see."""
    item = trace_item(record)
    event: dict[str, Any] = item["event"]
    if "request" in event:
        del event["request"]["unredacted"]
    elif record.event == "alarm":
        event.setdefault("scheduledTime", item["eventTimestamp"])
    elif record.event == "tail":
        event["consumedEvents"] = []
    item["scriptVersion"]["id"] = version_uuid(record.version.id)
    return item
