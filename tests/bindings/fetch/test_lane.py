"""The places of one request: a waiting fetch gets the next free place, and no place is lost."""

from __future__ import annotations

import asyncio

import pytest

from atoll.bindings.fetch import lane
from atoll.bindings.fetch.fetching import Fetching
from atoll.bindings.fetch.lane import AT_ONCE, Lane, LanePlaces
from atoll.bindings.scope import CallScope
from tests.engine.engine_room import HELLO, script


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> LanePlaces:
    monkeypatch.setattr(lane, "PATIENCE", 600)  # a fetch that misses its signal would wait this long
    return LanePlaces()


def fetches(count: int) -> list[Fetching]:
    return [Fetching(f"server {i}", None) for i in range(count)]


async def entering(places: LanePlaces, fetching: Fetching) -> asyncio.Task[None]:
    task = asyncio.ensure_future(places.enter(fetching))
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def test_the_place_of_an_aborted_waiting_fetch_goes_to_the_next(places: LanePlaces) -> None:
    held = fetches(AT_ONCE)
    for each in held:
        places.take(each)
    first, second = [await entering(places, each) for each in fetches(2)]
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    places.leave(held[0])
    await asyncio.wait_for(second, 30)
    assert not places.has_room


async def test_a_place_offered_to_an_aborted_fetch_goes_to_the_next(places: LanePlaces) -> None:
    held = fetches(AT_ONCE)
    for each in held:
        places.take(each)
    first, second = [await entering(places, each) for each in fetches(2)]
    places.leave(held[0])  # the first waiter is notified
    first.cancel()  # and is cancelled before it takes the place
    await asyncio.gather(first, return_exceptions=True)
    await asyncio.wait_for(second, 30)


async def test_a_new_fetch_queues_behind_waiting_ones(places: LanePlaces) -> None:
    held = fetches(AT_ONCE)
    for each in held:
        places.take(each)
    waited = await entering(places, *fetches(1))
    places.leave(held[0])
    assert not places.has_room  # although the waiter has not run yet
    late = await entering(places, *fetches(1))
    await asyncio.wait_for(waited, 30)
    assert not late.done()
    places.leave(held[1])
    await asyncio.wait_for(late, 30)


async def test_a_fetch_without_a_place_releases_none(places: LanePlaces) -> None:
    for each in fetches(AT_ONCE):
        places.take(each)
    waits = await entering(places, *fetches(1))
    places.leave(*fetches(1))
    await asyncio.sleep(0)
    assert not waits.done()
    waits.cancel()


def test_a_call_through_a_service_binding_has_the_places_of_its_caller() -> None:
    version = script(HELLO)
    caller, callee, last = CallScope(version), CallScope(version), CallScope(version)
    callee.caller, last.caller = caller, callee
    theirs = last.local(Lane)
    assert theirs.places is caller.local(Lane).places is callee.local(Lane).places
    fetching = Fetching("a server", None)
    theirs.add(1, fetching)
    theirs.places.take(fetching)
    for each in fetches(AT_ONCE - 1):
        theirs.places.take(each)
    assert not caller.local(Lane).places.has_room
    last.close()  # its places are free again
    assert caller.local(Lane).places.has_room


def test_a_call_whose_caller_has_ended_has_its_own_places() -> None:
    caller, callee = CallScope(script(HELLO)), CallScope(script(HELLO))
    callee.caller = caller
    caller.close()
    assert callee.local(Lane).places.has_room
