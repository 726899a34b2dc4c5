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
from atoll.front.access_log import access_log_of
from atoll.front.bounds import Bounds, bounds_of
from atoll.front.peer import Proxies
from atoll.handover.notify import notify
from atoll.node_log import set_up_log

log = logging.getLogger("atoll.handover")

Reload: TypeAlias = Callable[[], tuple[Settings, Mapping[str, str]]]  # reads all sources again. Raises StartError

OF_FRONT = tuple(field.name for field in fields(Bounds))
OF_LOGS = ("log_rate", "log_quiet_rate", "log_bytes", "log_days")
OF_PROXIES = ("trusted_proxies", "geo_files")
OF_DRAIN = ("drain_delay", "drain_seconds")
OF_ACCESS_LOG = ("access_log", "access_log_format", "access_log_share", "access_log_bytes", "access_log_files")
OF_NODE_LOG = ("node_log_format", "node_log_level")
RELOADED = (*OF_FRONT, *OF_PROXIES, *OF_LOGS, *OF_DRAIN, *OF_ACCESS_LOG, *OF_NODE_LOG)


async def reload_into(node: Node, reload: Reload) -> None:
    """Apply what has changed. If a setting is not valid, nothing changes."""
    notify("RELOADING=1")
    try:
        settings, _ = reload()
        proxies = await asyncio.to_thread(Proxies, settings.trusted_proxies, settings.geo_files)
        changes = any(getattr(settings, name) != getattr(node.settings, name) for name in OF_ACCESS_LOG)
        access_log = access_log_of(settings) if changes else node.server.access_log
        try:
            if node.certificates is not None:
                node.certificates.reload()
        except StartError:
            if changes and access_log is not None:
                await access_log.close()
            raise
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
    if changes:
        former = node.server.use_access_log(access_log)
        if former is not None:
            await former.close()
    if any(name in OF_NODE_LOG for name in applied):
        set_up_log(node.settings)
    node.logs.limit(node.settings)
    log.info("reloaded: %s", ", ".join(applied) or "no setting has changed")
    if later:
        log.warning("these settings need a restart or --replace: %s", ", ".join(later))
