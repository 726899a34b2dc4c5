"""The list of bindings. A new one is a folder beside echo/ and a line here."""

from __future__ import annotations

from atoll.bindings.base import Binding
from atoll.bindings.echo.ops import Echo
from atoll.bindings.fetch.ops import Fetch
from atoll.bindings.kv.ops import KV
from atoll.bindings.kv.sqlite import SqliteKV
from atoll.bindings.queue.ops import QueueBinding
from atoll.bindings.services import Services


def make_bindings(services: Services) -> list[Binding]:
    """One of each kind, for the life of a node."""
    data = services.settings.data
    return [
        Echo(),
        Fetch(services),
        KV(SqliteKV(data / "kv.db")),
        QueueBinding(services.queues),
    ]
