"""No attack makes a quiet tenant wait, and none makes the node hold more memory than is stated for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stalls.stage import BUSY_WAIT_MS, Attack, Stage, all_attacks

ROUNDS = 3  # another program may take the machine for a while, but not three times in a row


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("stage"))
    yield stage
    stage.close()


@pytest.mark.parametrize("chosen", all_attacks(), ids=lambda chosen: chosen.name.replace(" ", "_"))
def test_a_quiet_tenant_does_not_wait_because_of(chosen: Attack, stage: Stage) -> None:
    for _ in range(ROUNDS):
        stall = stage.measure(chosen)
        assert stall.memory_mb <= chosen.memory_mb
        if stall.wait_ms <= BUSY_WAIT_MS:
            return
    pytest.fail(f"the quiet tenant waited {stall.wait_ms:.0f} ms, three times in a row above {BUSY_WAIT_MS:.0f}")
