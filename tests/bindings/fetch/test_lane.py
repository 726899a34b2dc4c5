"""The places of one request: who waits gets the next that is free, and nobody is forgotten."""

from __future__ import annotations

import asyncio

import pytest

from atoll.bindings.fetch import lane
from atoll.bindings.fetch.fetching import Fetching
from atoll.bindings.fetch.lane import AT_ONCE, Lane, Places
from atoll.bindings.scope import Scope
from tests.engine.engine_room import HELLO, script


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.setattr(lane, "PATIENCE", 600)  # a place that nobody is told of would be waited for as long
    return Places()


def fetches(count: int) -> list[Fetching]:
    return [Fetching(f"server {i}", None) for i in range(count)]


async def entering(places: Places, fetching: Fetching) -> asyncio.Task[None]:
    task = asyncio.ensure_future(places.enter(fetching))
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def test_a_place_that_an_aborted_fetch_waited_for_goes_to_the_next(places: Places) -> None:
    held = fetches(AT_ONCE)
    for each in held:
        places.take(each)
    first, second = [await entering(places, each) for each in fetches(2)]
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    places.leave(held[0])
    await asyncio.wait_for(second, 30)
    assert not places.has_room


async def test_a_place_that_was_offered_to_an_aborted_fetch_goes_to_the_next(places: Places) -> None:
    held = fetches(AT_ONCE)
    for each in held:
        places.take(each)
    first, second = [await entering(places, each) for each in fetches(2)]
    places.leave(held[0])  # the first is told,
    first.cancel()  # and goes before it could take it
    await asyncio.gather(first, return_exceptions=True)
    await asyncio.wait_for(second, 30)


async def test_who_comes_when_a_place_is_free_waits_behind_those_who_wait(places: Places) -> None:
    held = fetches(AT_ONCE)
    for each in held:
        places.take(each)
    waited = await entering(places, *fetches(1))
    places.leave(held[0])
    assert not places.has_room  # though the one who waited has not gone on yet
    late = await entering(places, *fetches(1))
    await asyncio.wait_for(waited, 30)
    assert not late.done()
    places.leave(held[1])
    await asyncio.wait_for(late, 30)


async def test_who_never_had_a_place_gives_none_back(places: Places) -> None:
    for each in fetches(AT_ONCE):
        places.take(each)
    waits = await entering(places, *fetches(1))
    places.leave(*fetches(1))
    await asyncio.sleep(0)
    assert not waits.done()
    waits.cancel()


def test_a_call_through_a_service_binding_has_the_places_of_its_caller() -> None:
    version = script(HELLO)
    caller, callee, last = Scope(version), Scope(version), Scope(version)
    callee.caller, last.caller = caller, callee
    theirs = last.local(Lane)
    assert theirs.places is caller.local(Lane).places is callee.local(Lane).places
    fetching = Fetching("a server", None)
    theirs.add(1, fetching)
    theirs.places.take(fetching)
    for each in fetches(AT_ONCE - 1):
        theirs.places.take(each)
    assert not caller.local(Lane).places.has_room
    last.close()  # what it held is the others' again
    assert caller.local(Lane).places.has_room


def test_a_call_whose_caller_is_over_has_places_of_its_own() -> None:
    caller, callee = Scope(script(HELLO)), Scope(script(HELLO))
    callee.caller = caller
    caller.close()
    assert callee.local(Lane).places.has_room
