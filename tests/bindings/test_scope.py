"""Resources that the ops of one call hold open: found by number, closed with the call, bounded."""

from __future__ import annotations

import pytest

from atoll.bindings.scope import MAX_OPEN, CallScope
from atoll.errors import InvalidArgument, QuotaExceeded
from atoll.workers import Version

VERSION = Version(id="v", worker_id="w", worker_name="w", tenant="default", modules=(), main="")


class Thing:
    def __init__(self, closes: list[Thing], breaks: bool = False) -> None:
        self.closes = closes
        self.breaks = breaks

    def close(self) -> None:
        self.closes.append(self)
        if self.breaks:
            raise OSError("it does not close")


class OtherThing(Thing):
    pass


def test_a_resource_is_found_only_by_its_number_and_kind() -> None:
    scope, thing = CallScope(VERSION), Thing([])
    number = scope.keep(thing)
    assert scope.find(number, Thing) is thing
    for wrong in (number + 1, str(number), None, -1, 1.5, [number]):
        with pytest.raises(InvalidArgument):
            scope.find(wrong, Thing)
    with pytest.raises(InvalidArgument):
        scope.find(number, OtherThing)


def test_a_resource_is_closed_once_by_release_or_the_end_of_the_call() -> None:
    scope, closes = CallScope(VERSION), list[Thing]()
    things = [Thing(closes), Thing(closes, breaks=True), Thing(closes), Thing(closes)]
    numbers = [scope.keep(thing) for thing in things]
    scope.release(numbers[0])
    scope.release(numbers[0])
    scope.forget(numbers[3])
    scope.close()
    assert sorted(map(id, closes)) == sorted(map(id, things[:3]))
    with pytest.raises(InvalidArgument):
        scope.keep(things[3])
    assert closes[-1] is things[3], "a resource that comes too late is closed at once"


def test_the_number_of_open_resources_of_a_call_is_limited() -> None:
    scope, closes = CallScope(VERSION), list[Thing]()
    for _ in range(MAX_OPEN):
        scope.keep(Thing(closes))
    with pytest.raises(QuotaExceeded):
        scope.keep(Thing(closes))
    assert len(closes) == 1
