"""Sets of request headers as clients of different kinds send them, for requests that do not repeat."""

from __future__ import annotations

import json
from collections.abc import Mapping

HEADER_SETS: tuple[dict[str, str], ...] = (
    {"User-Agent": "curl/8.5.0", "Accept": "*/*"},
    {
        "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "Accept-Language": "en-US,en;q=0.5",
        "Accept-Encoding": "gzip, deflate, br, zstd",
        "Cookie": "session=0123456789abcdef; theme=dark",
    },
    {"User-Agent": "okhttp/4.12.0", "Accept": "application/json", "Authorization": "Bearer 0123456789abcdef"},
)


def lua_table(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"[{json.dumps(name)}] = {json.dumps(value)}" for name, value in values.items()) + "}"
