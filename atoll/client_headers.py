"""Headers that identify a client, or the worker that sent a request. Only Atoll sets them.

A worker may rely on them. So the front removes them from requests of clients, and `fetch()` from requests to a host
that may be another tenant's worker. Other `CF-` headers are left alone: clients of Cloudflare's APIs send some of
their own.
"""

from __future__ import annotations

import re
from typing import Final

# Facts about a client that only Cloudflare knows. Other proxies forward these headers as their client sent them.
OF_CLOUDFLARE: Final = (
    r"cf-(?:pseudo-ipv4|connecting-o2o|ip(?:city|continent|latitude|longitude)|region(?:-code)?|metro-code|postal-code"
    r"|timezone|device-type|bot-score|verified-bot|threat-score|ja[34](?:-hash)?|cert-[a-z0-9-]+"
    r"|access-authenticated-user-email)"
)
OF_CLIENT: Final = (
    rf"{OF_CLOUDFLARE}|cf-(?:connecting-ip(?:v6)?|ipcountry|ray|visitor|atoll-[a-z0-9-]+)"
    r"|x-(?:real-ip|forwarded-[a-z]+)|true-client-ip|forwarded"
)
OF_WORKER: Final = r"cf-worker|cf-ew-via"

CLIENT_NAME: Final = re.compile(OF_CLIENT)
