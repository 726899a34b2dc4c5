"""Fixtures for all tests: an event loop like the node's, and a whole Atoll in its own process."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvloop
from hypothesis import HealthCheck, settings

from atoll.front import connection
from tests.running import Atoll
from tools import compile_hot

# The duration of an example depends on the machine, not on the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# The caller of the tests may ignore these signals (a script with `&`, nohup), and programs under test would inherit
# that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


# Rooms and files whose tests measure time, or need the machine: `make test` runs them one at a time, after the others.
ALONE = (
    "engine/test_attacks.py",
    "engine/test_head_start.py",
    "engine/test_limits.py",
    "engine/test_neighbours.py",
    "engine/test_quarantine.py",
    "engine/test_scaling.py",
    "engine/test_slow_threads.py",
    "engine/test_spares.py",
    "engine/test_stuck.py",
    "engine/test_supervisor.py",
    "engine/test_timers.py",
    "stalls",
    "packaging",  # it builds in the folder that the others run from
    "bindings/cron/test_expression.py",
    "e2e/test_clock_is_set.py",
    "e2e/test_engine_dies.py",
    "e2e/test_fairness.py",
    "e2e/test_native_work.py",
    "e2e/test_warm_start.py",
    "front/test_turns.py",
    "offload",
    "sockets/test_websocket_limits.py",
    "test_hot_path.py",
    "test_patterns.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        path = str(item.path.relative_to(here)) if item.path.is_relative_to(here) else ""
        if any(path == name or path.startswith(name + "/") for name in ALONE):
            item.add_marker("alone")


def pytest_configure(config: pytest.Config) -> None:
    """Refuses to test compiled code that differs from its source."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        os.environ.pop("COVERAGE_PROCESS_CONFIG", None)  # only the processes of the test run are measured, not nodes
    compiled = Path(connection.__file__)
    if compiled.suffix == ".so":
        mark = compiled.parent.parent.parent / compile_hot.MARK
        if mark.read_text() != compile_hot.fingerprint():
            pytest.exit("the hot path was changed after it was compiled: run `make dev`", returncode=4)


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def atoll(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    """One node for all tests that only deploy and call. Names of workers must differ between tests."""
    node = Atoll(tmp_path_factory.mktemp("atoll"))
    node.start()
    yield node
    assert node.stop() == 0


@pytest.fixture
def new_atoll(tmp_path: Path) -> Iterator[Callable[..., Atoll]]:
    """Starts separate nodes for a test: `new_atoll(idle_seconds=1)`. The fixture stops them at the end."""
    nodes: list[Atoll] = []

    def start(**settings: object) -> Atoll:
        node = Atoll(tmp_path / f"node{len(nodes)}", **settings)
        node.start()
        nodes.append(node)
        return node

    yield start
    for node in nodes:
        node.stop()
