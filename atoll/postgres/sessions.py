"""This node among others, as the stores in PostgreSQL see it (cluster/nodes.py)."""

from __future__ import annotations

from typing import Protocol


class NodeSession(Protocol):
    session: str  # random, new at each start
    ahead_ms: int  # how far the database's clock is ahead of this machine's

    async def live(self) -> list[str]:
        """The sessions of all nodes that run."""
