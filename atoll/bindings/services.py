"""What a node has for its bindings to work with. Each takes of it what it needs, in its constructor."""

from __future__ import annotations

from dataclasses import dataclass

from atoll.bindings.queue.store import QueueStore
from atoll.config import Settings
from atoll.db.sqlite import Database


@dataclass(frozen=True, slots=True)
class Services:
    settings: Settings
    database: Database
    queues: QueueStore
