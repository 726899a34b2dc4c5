"""origin: the server that a worker stands in front of.

There is no op: `fetch.start` leads here, for fetches through the binding and for those to the worker's own hosts. The
request keeps its URL and its Host header; only the server that it is sent to is another.
"""

from __future__ import annotations

import re

import msgspec

from atoll.bindings.base import Binding
from atoll.bindings.fetch.ops import Fetch
from atoll.egress.client import Origin
from atoll.errors import InvalidArgument

URL = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9._-]{1,253})(?::(\d{1,5}))?/?", re.ASCII)
HINT = "write it like https://backend.example or http://10.0.0.7:8000, without a path"


class OriginEntry(msgspec.Struct, forbid_unknown_fields=True):
    url: str


class WorkerOrigin(Binding):
    kind = "origin"
    Entry = OriginEntry

    def __init__(self, fetch: Fetch) -> None:
        fetch.partners.forwards[self.kind] = read_origin

    def claim(self, tenant: str, entry: OriginEntry) -> str:
        read_origin(entry.url)
        return entry.url


def read_origin(url: str) -> Origin:
    """Raises InvalidArgument."""
    found = URL.fullmatch(url.lower())
    if found is None:
        raise InvalidArgument(f"the origin is {url!r:.100}: {HINT}")
    scheme, host, port = found.groups()
    number = int(port) if port else (443 if scheme == "https" else 80)
    if not 0 < number < 65536:
        raise InvalidArgument(f"the origin is {url!r:.100}: {HINT}")
    return Origin(scheme == "https", host, number)
