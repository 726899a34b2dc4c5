"""SIGHUP: settings that may change while a node runs, and certificates."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TypeAlias

from atoll.app import Node
from atoll.config import FIELDS, Settings
from atoll.errors import StartError
from atoll.front.bounds import Bounds, bounds_of
from atoll.front.peer import Proxies
from atoll.handover.notify import notify

log = logging.getLogger("atoll.handover")

Reload: TypeAlias = Callable[[], tuple[Settings, Mapping[str, str]]]  # reads all sources again. Raises StartError

OF_FRONT = tuple(field.name for field in fields(Bounds))
OF_LOGS = ("log_rate", "log_quiet_rate", "log_bytes", "log_days")
OF_PROXIES = ("trusted_proxies", "geo_files")
OF_DRAIN = ("drain_delay", "drain_seconds")
RELOADED = (*OF_FRONT, *OF_PROXIES, *OF_LOGS, *OF_DRAIN)


async def reload_into(node: Node, reload: Reload) -> None:
    """Apply what has changed. If a setting is not valid, nothing changes."""
    notify("RELOADING=1")
    try:
        settings, _ = reload()
        proxies = await asyncio.to_thread(Proxies, settings.trusted_proxies, settings.geo_files)
        if node.certificates is not None:
            node.certificates.reload()
    except StartError as error:
        log.error("the settings were not reloaded: %s (%s)", error, error.hint)
        return
    finally:
        notify("READY=1")
    old = node.settings
    found = [name for name in FIELDS if settings.value(name) != old.value(name) and (name != "port" or settings.port)]
    applied, later = [name for name in found if name in RELOADED], [name for name in found if name not in RELOADED]
    node.use_settings({name: settings.value(name) for name in applied})
    shared = node.server.shared
    shared.bounds = bounds_of(node.settings)
    if any(name in OF_PROXIES for name in applied):
        shared.proxies = proxies
    node.server.drain_seconds = node.settings.drain_seconds
    node.logs.limit(node.settings)
    log.info("reloaded: %s", ", ".join(applied) or "no setting has changed")
    if later:
        log.warning("these settings need a restart or --replace: %s", ", ".join(later))
