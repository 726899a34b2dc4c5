"""Objects, files and deploys survive `kill -9` at random moments: see tests/crash.py."""

from __future__ import annotations

from collections.abc import Callable

from tests.crash import KINDS, crash
from tests.running import Atoll

SECONDS = 20


def test_what_was_acknowledged_is_whole_and_the_rest_is_absent_or_whole(new_atoll: Callable[..., Atoll]) -> None:
    report = crash(new_atoll(engines=1), SECONDS)
    assert not report.problems
    assert report.lives >= 3 and set(report.acknowledged) == {kind.kind for kind in KINDS}
    assert sum(report.interrupted.values()) >= report.lives, "kills hit changes that were on their way"
