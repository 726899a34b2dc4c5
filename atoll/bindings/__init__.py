"""The list of bindings. A new one is a folder beside echo/ and a line here."""

from __future__ import annotations

from atoll.bindings.base import Binding
from atoll.bindings.cache.disk import CacheDisk
from atoll.bindings.cache.http_cache import HttpCache
from atoll.bindings.cache.ops import Cache
from atoll.bindings.echo.ops import Echo
from atoll.bindings.fetch.ops import Fetch
from atoll.bindings.kv.ops import KV
from atoll.bindings.kv.sqlite import SqliteKV
from atoll.bindings.missing.ops import Missing
from atoll.bindings.pipe.ops import PipeBinding
from atoll.bindings.queue.ops import QueueBinding
from atoll.bindings.ratelimit.memory import MemoryCounters
from atoll.bindings.ratelimit.ops import RateLimit
from atoll.bindings.service.ops import Service
from atoll.bindings.services import Services
from atoll.bindings.version_metadata import VersionMetadata


def make_bindings(services: Services) -> list[Binding]:
    """One of each kind, for the life of a node."""
    settings = services.settings
    cache = HttpCache(CacheDisk(settings.data / "cache", settings.cache_bytes), settings.cache_object_bytes)
    pipes = PipeBinding()
    return [
        Echo(),
        Fetch(services, cache),
        KV(SqliteKV(settings.data / "kv.db")),
        QueueBinding(services.queues),
        pipes,
        Service(services, pipes),
        Cache(cache),
        RateLimit(MemoryCounters()),
        VersionMetadata(),
        Missing(),
    ]
