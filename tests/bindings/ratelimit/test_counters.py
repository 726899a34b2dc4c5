"""The contract of every counter of rate limits. Another backend is one more entry of BACKENDS."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atoll.bindings.ratelimit import memory
from atoll.bindings.ratelimit.memory import MemoryCounters
from atoll.bindings.ratelimit.store import Bucket, Counters

BACKENDS: dict[str, Callable[[Callable[[], float]], Counters]] = {"memory": lambda clock: MemoryCounters(clock=clock)}
ALICE = Bucket("alice", "logins", 10)


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=BACKENDS)
def counters(request: pytest.FixtureRequest, clock: Clock) -> Counters:
    return BACKENDS[request.param](clock)


async def test_a_key_is_counted_within_a_window_of_the_wall_clock(counters: Counters, clock: Clock) -> None:
    clock.now += 9.5
    assert counters.window_end(10) == 1_800_000_010
    assert [await counters.count(ALICE, "a") for _ in range(3)] == [1, 2, 3]
    assert await counters.look(ALICE, "a") == 3 and await counters.look(ALICE, "b") == 0
    clock.now += 0.5
    assert await counters.look(ALICE, "a") == 0 and await counters.count(ALICE, "a") == 1


async def test_setting_the_clock_back_starts_a_new_window(counters: Counters, clock: Clock) -> None:
    await counters.count(ALICE, "a")
    clock.now -= 1000
    assert await counters.count(ALICE, "a") == 1


async def test_tenants_namespaces_and_periods_are_counted_separately(counters: Counters) -> None:
    for bucket in (ALICE, ALICE._replace(tenant="bob"), ALICE._replace(namespace="x"), ALICE._replace(period=60)):
        assert await counters.count(bucket, "a") == 1
    assert await counters.counted("alice") == [
        ("logins", 10, 1, 1_800_000_010),
        ("x", 10, 1, 1_800_000_010),
        ("logins", 60, 1, 1_800_000_060),
    ]
    assert [counted.namespace for counted in await counters.counted("bob")] == ["logins"]


async def test_counts_are_reset_by_key_by_namespace_and_by_tenant(counters: Counters) -> None:
    other = ALICE._replace(namespace="other")
    for key in "ab":
        await counters.count(ALICE, key)
        await counters.count(other, key)
    await counters.count(ALICE._replace(tenant="bob"), "a")
    assert await counters.reset("alice", "logins", "a") and not await counters.reset("alice", "logins", "a")
    assert [await counters.look(ALICE, key) for key in "ab"] == [0, 1]
    assert await counters.reset("alice", "logins") and not await counters.reset("alice", "logins")
    assert await counters.look(other, "a") == 1
    assert await counters.reset("alice") and await counters.counted("alice") == []
    assert await counters.look(ALICE._replace(tenant="bob"), "a") == 1


async def test_a_flood_of_keys_does_not_fill_the_memory(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_KEYS", 10)
    counters = MemoryCounters(clock=clock)
    assert [await counters.count(ALICE, str(i)) for i in range(100)] == [1] * 100
    assert [counted.keys for counted in await counters.counted("alice")] == [10]
    assert await counters.count(ALICE, "3") == 2
    await counters.reset("alice", "logins", "3")
    await counters.count(ALICE, "77")
    assert await counters.count(ALICE, "77") == 2, "there is room again"
