"""Responses that are kept in memory: no more than there is room for, the one used for longest ago goes first."""

from __future__ import annotations

from atoll.bindings.cache.hot import LARGEST, OVERHEAD, Hot
from atoll.bindings.cache.store import Place, Stored


def place(number: int) -> Place:
    return Place("alice", "default", f"{number}")


def stored(size: int) -> Stored:
    return Stored(1, "", 200, "", 0, 0, 0, size, bytes(size), "")


def test_the_one_used_for_longest_ago_makes_room() -> None:
    hot = Hot(3 * (OVERHEAD + 100))
    for number in range(3):
        hot.put(place(number), [stored(99)])
    assert hot.get(place(0)) is not None
    hot.put(place(3), [stored(99)])
    assert [hot.get(place(number)) is not None for number in range(4)] == [True, False, True, True]
    hot.drop(place(0))
    hot.put(place(4), [stored(99)])
    assert [hot.get(place(number)) is not None for number in range(5)] == [False, False, True, True, True]


def test_what_is_large_in_a_file_or_not_there_is_not_kept() -> None:
    hot = Hot()
    hot.put(place(0), [])
    hot.put(place(1), [stored(LARGEST)])
    hot.put(place(2), [stored(1), stored(1)._replace(body=None)])
    assert [hot.get(place(number)) for number in range(3)] == [None] * 3


def test_the_same_place_counts_once() -> None:
    hot = Hot(2 * (OVERHEAD + 100))
    for _ in range(10):
        hot.put(place(0), [stored(99)])
    hot.put(place(1), [stored(99)])
    assert hot.get(place(0)) is not None and hot.get(place(1)) is not None
