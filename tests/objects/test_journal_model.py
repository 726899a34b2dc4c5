"""Random commits, merges, kills and restarts, compared with dictionaries of pages."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atoll.objects.local import LocalObjects
from atoll.objects.store import DELETE_ALARM, KEEP_ALARM, PAGE, SET_ALARM, ObjectKey
from tests.objects.journals import MOST, SEGMENT, Stored, key, make_commit, page, running

OBJECTS = st.integers(0, 3)
SOME_PAGES = st.lists(st.integers(1, 6), max_size=4, unique=True)
ALARM = st.sampled_from([(KEEP_ALARM, -1), (SET_ALARM, 100), (SET_ALARM, 50), (DELETE_ALARM, -1)])
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), OBJECTS, SOME_PAGES, st.integers(0, 6), ALARM),
        st.tuples(st.just("merge")),
        st.tuples(st.just("restart")),
        st.tuples(st.just("kill")),
        st.tuples(st.just("reopen"), OBJECTS),
        st.tuples(st.just("delete"), OBJECTS),
    ),
    max_size=40,
)


class Model:
    """What one object must hold."""

    def __init__(self) -> None:
        self.pages: list[bytes] = []
        self.sequence = 0
        self.alarm = -1

    def commit(self, changed: dict[int, bytes], size: int, alarm: tuple[int, int]) -> None:
        self.sequence += 1
        self.pages = [*self.pages[:size], *[bytes(PAGE)] * (size - len(self.pages))]
        for number, content in changed.items():
            self.pages[number - 1] = content
        if alarm[0] != KEEP_ALARM:
            self.alarm = alarm[1]


class Run:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starts = 0
        self.models = {key(number): Model() for number in range(4)}
        self.stored: Stored
        self._count = 0

    @property
    def data(self) -> Path:
        return self._folder / str(self._starts)

    async def start(self) -> None:
        self.stored = Stored(await LocalObjects.start(self.data, segment=SEGMENT, most=MOST))
        for each in self.models:
            await self.check(each)

    async def check(self, each: ObjectKey) -> None:
        model = self.models[each]
        assert await self.stored.pages(each) == model.pages
        opened = await self.stored.open(each)
        assert (opened.sequence, opened.alarm_ms) == (model.sequence, model.alarm)

    async def act(self, act: tuple[object, ...]) -> None:
        match act:
            case ("commit", int(number), list(numbers), int(size), tuple(alarm)):
                self._count += 1
                changed = {each: page(f"{self._count} {each}") for each in numbers if each <= size}
                model = self.models[key(number)]
                model.commit(changed, size, alarm)
                await self.stored.begin(key(number), make_commit(model.sequence, size, changed, *alarm))
            case ("merge",):
                await self.stored.store._merger._round()
            case ("restart",):
                await self.stored.store.stop()
                await self.start()
            case ("kill",):
                shutil.copytree(self.data, self._folder / str(self._starts + 1))  # as a kill would leave it
                await self.stored.store.stop()
                self._starts += 1
                await self.start()
            case ("reopen", int(number)):
                await self.check(key(number))
            case ("delete", int(number)):
                self.stored.store.close(key(number))
                await self.stored.store.delete(key(number))
                self.models[key(number)] = Model()
                await self.check(key(number))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(acts=ACTS)
def test_a_store_holds_what_was_committed(acts: list[tuple[object, ...]]) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            run = Run(Path(folder))
            await run.start()
            for act in acts:
                await run.act(act)
            await run.act(("kill",))
            sizes = run.stored.store.size("counters")
            assert sizes.bytes == sum(len(model.pages) * PAGE for model in run.models.values())
            assert sizes.objects == sum(len(model.pages) > 0 for model in run.models.values())
            listed = await run.stored.store.list_objects("counters", "", 10)
            assert [each.id for each in listed if each.bytes] == [
                each.id for each, model in run.models.items() if model.pages
            ]
            times = [model.alarm for model in run.models.values() if model.alarm >= 0]
            assert run.stored.store.next_alarm() == min(times, default=None)
            await run.stored.store.stop()

    asyncio.run(main())


async def test_an_engine_never_reads_a_page_that_is_being_merged(tmp_path: Path) -> None:
    """Pages outside of commits under way are read from the file during merges, as an engine does."""
    async with running(tmp_path) as stored:
        opened = await stored.store.open(key())
        await stored.begin(key(), make_commit(1, 4, {number: page(f"still {number}") for number in range(1, 5)}))
        await stored.store._merger._round()
        for sequence in range(2, 30):
            done = stored.begin(key(), make_commit(sequence, 4 + sequence % 2, {2: page(sequence)}))
            merging = asyncio.ensure_future(stored.store._merger._round())
            while not merging.done():
                pages = os.pread(opened.fd, 4 * PAGE, 0)
                for number in (1, 3, 4):
                    assert pages[(number - 1) * PAGE : number * PAGE] == page(f"still {number}")
                await asyncio.sleep(0)
            await done
            await merging
        os.close(opened.fd)
