"""Job processes: what they run, what they may use, and what remains after a failure."""

from __future__ import annotations

import ast
import asyncio
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from atoll.offload import pool
from atoll.offload.jobs import Job, ProcessLost, TooManyJobs, TooMuchWork
from atoll.offload.pool import Offload
from atoll.offload.spool import Spool, SpoolFull, SpoolRoom

ROOT = str(Path(__file__).resolve().parents[2])
HERE = "tests.offload.jobs_for_tests"
SIZE = Job(f"{HERE}:size")
REPEAT = Job(f"{HERE}:repeat")
WAIT = Job(f"{HERE}:wait_for")
MB = 1 << 20


@asynccontextmanager
async def offload(processes: int = 2, memory_bytes: int = 256 * MB, idle_seconds: float = 60) -> AsyncIterator[Offload]:
    made = Offload(processes, memory_bytes, idle_seconds=idle_seconds, paths=[ROOT])
    try:
        yield made
    finally:
        await made.close()
        assert not made.counts().processes


async def read(made: Offload, job: Job, data: bytes | Spool = b"", tenant: str = "one", **args: object) -> bytes:
    with await made.run(job, data, args, tenant=tenant) as result:
        return await result.read()


async def eventually(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (the condition sends no event)
            await asyncio.sleep(0.01)


@contextmanager
def many_descriptors(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 200), hard))
    opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(count)]
    try:
        yield
    finally:
        for fd in opened:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_job_receives_and_returns_bytes_of_any_size() -> None:
    async with offload() as made:
        for length in (0, 1, 32 << 10, (32 << 10) + 1, MB, 20 * MB):
            assert await read(made, SIZE, b"x" * length) == str(length).encode()
            assert await read(made, REPEAT, b"ab" * length, times=2) == b"ab" * length * 2


async def test_a_job_runs_on_a_node_with_thousands_of_open_connections() -> None:
    """Its socket then has a number that is too large for select()."""
    with many_descriptors(1500):
        async with offload() as made:
            assert await read(made, SIZE, b"x" * MB) == str(MB).encode()


async def test_a_large_result_can_be_read_in_pieces() -> None:
    async with offload() as made:
        with await made.run(REPEAT, bytes(range(256)) * 4096, {"times": 3}, tenant="one") as result:
            pieces = [piece async for piece in result.pieces()]
            assert await result.read(256 * 4096 + 5, 3) == bytes([5, 6, 7])
        assert len(pieces) > 3 and b"".join(pieces) == bytes(range(256)) * 4096 * 3


async def test_a_spooled_body_reaches_a_job_without_a_read_by_the_node(tmp_path: Path) -> None:
    room = SpoolRoom(tmp_path, 100 * MB, 100 * MB)
    async with offload() as made:
        with Spool(room, "one") as spool:
            for _ in range(40):
                await spool.add(b"x" * (100 << 10))
            await spool.finish()
            assert not spool.is_small and room.held == 4000 << 10
            assert not os.listdir(tmp_path)  # the file has no name
            assert await read(made, SIZE, spool) == str(4000 << 10).encode()
        assert room.held == 0


async def test_bodies_of_one_tenant_and_of_all_are_bounded(tmp_path: Path) -> None:
    room = SpoolRoom(tmp_path, tenant_bytes=1000, node_bytes=1500)
    with Spool(room, "one") as first, Spool(room, "one") as second, Spool(room, "two") as third:
        await first.add(b"x" * 900)
        with pytest.raises(SpoolFull, match="of this tenant") as full:
            await second.add(b"x" * 101)
        assert full.value.of_tenant
        await third.add(b"x" * 600)
        with pytest.raises(SpoolFull, match="on this node"):
            await third.add(b"x")
        first.close()
        await second.add(b"x" * 900)
    assert room.held == 0


async def test_a_job_that_computes_for_too_long_is_ended_and_the_next_one_runs() -> None:
    async with offload() as made:
        with pytest.raises(TooMuchWork, match="1 s of CPU time"):
            await read(made, Job(f"{HERE}:spin", seconds=1))
        assert await read(made, SIZE, b"abc") == b"3"
        assert made.counts().endings["spin", "limit"] == 1


async def test_a_job_that_waits_for_too_long_is_ended_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pool, "WALL", 0.3)
    async with offload() as made:
        with pytest.raises(TooMuchWork, match="takes longer"):
            await read(made, Job(f"{HERE}:wait_for", seconds=1), path=str(tmp_path / "never"))
        assert await read(made, SIZE, b"abc") == b"3"


async def test_a_job_that_needs_too_much_memory_fails_alone_with_a_clear_error() -> None:
    fill = Job(f"{HERE}:fill")
    async with offload(memory_bytes=200 * MB) as made:
        assert await read(made, fill, mb=50) == b"50"
        with pytest.raises(TooMuchWork, match="more memory"):
            await read(made, fill, mb=500)
        assert await read(made, fill, mb=50) == b"50"


async def test_after_a_crash_only_its_own_job_fails(tmp_path: Path) -> None:
    async with offload() as made:
        other = asyncio.ensure_future(read(made, WAIT, tenant="two", path=str(tmp_path / "go")))
        with pytest.raises(ProcessLost):
            await read(made, Job(f"{HERE}:crash"))
        (tmp_path / "go").touch()
        assert await other
        assert await read(made, SIZE, b"abc") == b"3"


async def test_an_idle_process_that_was_killed_is_replaced_silently() -> None:
    async with offload() as made:
        assert await read(made, SIZE, b"abc") == b"3"
        for pid in made.pids().values():
            os.kill(pid, signal.SIGKILL)
        assert await read(made, SIZE, b"abcd") == b"4"


async def test_a_bug_in_a_job_is_raised_with_its_trace() -> None:
    async with offload() as made:
        with pytest.raises(RuntimeError, match="ValueError: a bug"):
            await read(made, Job(f"{HERE}:fail"))


async def test_tenants_take_turns_and_none_has_two_jobs_at_once(tmp_path: Path) -> None:
    order: list[str] = []

    async def one(made: Offload, tenant: str, number: int) -> None:
        await read(made, WAIT, tenant=tenant, path=str(tmp_path / "go"))
        order.append(f"{tenant}{number}")

    async with offload(processes=1) as made:
        greedy = [asyncio.ensure_future(one(made, "greedy", number)) for number in range(6)]
        await asyncio.sleep(0)
        modest = [asyncio.ensure_future(one(made, tenant, 0)) for tenant in ("a", "b")]
        await asyncio.sleep(0)
        assert made.counts().running == 1 and made.counts().waiting == 7
        (tmp_path / "go").touch()
        await asyncio.gather(*greedy, *modest)
        assert order[:4] == ["greedy0", "greedy1", "a0", "b0"]

    (tmp_path / "go").unlink()
    async with offload(processes=2) as made:
        both = [asyncio.ensure_future(read(made, WAIT, path=str(tmp_path / "go"))) for _ in range(2)]
        await asyncio.sleep(0)
        assert made.counts().running == 1  # a place is left for others
        (tmp_path / "go").touch()
        await asyncio.gather(*both)


async def test_too_many_waiting_jobs_are_refused_per_tenant_and_over_all(tmp_path: Path) -> None:
    async with offload(processes=1) as made:

        def begin(tenant: str) -> asyncio.Task[bytes]:
            return asyncio.ensure_future(read(made, WAIT, tenant=tenant, path=str(tmp_path / "go")))

        jobs = [begin("one") for _ in range(1 + pool.TENANT_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyJobs, match="of this tenant") as refused:
            await begin("one")
        assert refused.value.of_tenant
        while made.counts().waiting < pool.WAITING:
            jobs.append(begin(f"tenant {len(jobs) // pool.TENANT_WAITING}"))
            await asyncio.sleep(0)
        with pytest.raises(TooManyJobs, match="on this node"):
            await begin("last")
        (tmp_path / "go").touch()
        await asyncio.gather(*jobs)
        assert made.counts().waiting == made.counts().running == 0


async def test_an_abandoned_job_is_ended(tmp_path: Path) -> None:
    async with offload(processes=1) as made:
        running = asyncio.ensure_future(read(made, WAIT, path=str(tmp_path / "never")))
        waiting = asyncio.ensure_future(read(made, WAIT, path=str(tmp_path / "never")))
        await eventually(lambda: made.pids())
        [pid] = made.pids().values()
        waiting.cancel()
        running.cancel()
        await asyncio.gather(running, waiting, return_exceptions=True)
        await eventually(lambda: not is_there(pid))
        assert await read(made, SIZE, b"abc") == b"3"
        assert made.counts().waiting == made.counts().running == 0


async def test_idle_processes_end_by_themselves() -> None:
    async with offload(idle_seconds=0.05) as made:
        assert await read(made, SIZE, b"abc") == b"3"
        [pid] = made.pids().values()
        await eventually(lambda: not made.pids() and not is_there(pid))


async def test_a_job_process_has_no_secrets_no_descriptors_and_low_priority() -> None:
    secret, other = os.pipe()
    os.set_inheritable(secret, True)
    os.environ["ATOLL_ROOT_KEY"] = "secret"
    try:
        async with offload() as made:
            names, links, nice, memory = ast.literal_eval((await read(made, Job(f"{HERE}:describe"))).decode())
    finally:
        del os.environ["ATOLL_ROOT_KEY"]
        os.close(secret), os.close(other)
    assert not [name for name in names if name != "LC_CTYPE"]
    assert len(links) == 1 and links[0].startswith("socket:")
    assert nice > os.nice(0) and memory == 256 * MB


NODE = """
import asyncio, sys
from atoll.offload.jobs import Job
from atoll.offload.pool import Offload

async def main():
    job = Job("tests.offload.jobs_for_tests:block")
    await Offload(paths=[sys.argv[2]]).run(job, b"", {"path": sys.argv[1]}, tenant="one")

asyncio.run(main())
"""


async def test_a_job_process_ends_when_its_node_is_killed_even_inside_a_c_function(tmp_path: Path) -> None:
    path, ready = tmp_path / "pid", tmp_path / "pid.ready"
    node = await asyncio.create_subprocess_exec(sys.executable, "-c", NODE, str(path), ROOT)
    await eventually(ready.exists)
    pid = int(ready.read_text())
    assert is_there(pid)
    node.kill()
    await node.wait()
    await eventually(lambda: not is_there(pid))
