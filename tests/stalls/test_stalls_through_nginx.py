"""Some of the attacks of clients, through the nginx of deploy/nginx. A quiet tenant's client does not wait for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.nginx import BehindNginx, require_nginx
from tests.stalls.stage import BUSY_WAIT_MS, Stage, all_attacks

ROUNDS = 3  # as in test_stalls.py
CHOSEN = (
    "pipelined requests to a worker, on many connections",
    "pipelined requests to the control host, on many connections",
    "chunks of one byte, on many connections",
    "large bodies on many connections",
    "WebSocket: pings",
    "unfinished bodies of 94 MB",
)
ATTACKS = {chosen.name: chosen for chosen in all_attacks()}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    require_nginx()
    stage = Stage(tmp_path_factory.mktemp("nginx"), kind=BehindNginx)
    yield stage
    stage.close()


@pytest.mark.parametrize("name", CHOSEN)
def test_a_quiet_tenant_does_not_wait_because_of_what_nginx_passes_on(name: str, stage: Stage) -> None:
    chosen = ATTACKS[name]
    assert chosen.is_of_a_client
    for _ in range(ROUNDS):
        stall = stage.measure(chosen)
        assert stall.memory_mb <= chosen.memory_mb
        if stall.wait_ms <= BUSY_WAIT_MS:
            return
    pytest.fail(f"the quiet tenant waited {stall.wait_ms:.0f} ms, three times in a row above {BUSY_WAIT_MS:.0f}")
