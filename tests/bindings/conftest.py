"""The engine room's fixtures, for triggers, which start workers without a request."""

from tests.engine.conftest import open_room, room, snapshots

__all__ = ["open_room", "room", "snapshots"]
