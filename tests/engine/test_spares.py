"""Spare isolates: their number follows demand, and returns to the setting when demand ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from atoll.wire.generated import SPARES_GROWTH
from tests.engine.engine_room import EngineRoom, script

HELLO = "export default {{ fetch() {{ return new Response('hello {}'); }} }};"


async def until_spares(room: EngineRoom, wanted: int) -> None:
    """Waits until a heartbeat of the engine reports this number."""
    (session,) = room.supervisor.running
    await room.until(lambda: session.link.pong.get("spares") == wanted, f"{wanted} spares")


async def test_spares_grow_with_demand_and_shrink_when_it_ends(
    open_room: Callable[..., Any],
) -> None:
    room = await open_room(heartbeat_seconds=0.05)
    await until_spares(room, 1)
    for burst in range(3):  # each burst finds too few and doubles the number
        await asyncio.gather(*(room.get(script(HELLO.format(f"{burst} {n}"))) for n in range(8)))
    await until_spares(room, SPARES_GROWTH)
    await until_spares(room, SPARES_GROWTH - 1)
