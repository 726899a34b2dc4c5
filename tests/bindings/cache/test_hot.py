"""Responses in memory: bounded in size, the least recently used is evicted first."""

from __future__ import annotations

from atoll.bindings.cache.hot import LARGEST, OVERHEAD, Hot
from atoll.bindings.cache.store import CachePlace, Stored


def place(number: int) -> CachePlace:
    return CachePlace("alice", "default", f"{number}")


def stored(size: int) -> Stored:
    return Stored(1, "", 200, "", 0, 0, 0, size, bytes(size), "")


def test_the_least_recently_used_response_is_evicted() -> None:
    hot = Hot(3 * (OVERHEAD + 100))
    for number in range(3):
        hot.put(place(number), [stored(99)])
    assert hot.get(place(0)) is not None
    hot.put(place(3), [stored(99)])
    assert [hot.get(place(number)) is not None for number in range(4)] == [True, False, True, True]
    hot.drop(place(0))
    hot.put(place(4), [stored(99)])
    assert [hot.get(place(number)) is not None for number in range(5)] == [False, False, True, True, True]


def test_large_file_backed_or_missing_responses_are_not_cached() -> None:
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
