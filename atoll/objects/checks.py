"""What a commit of an object may be. The engine that sends it is not trusted."""

from __future__ import annotations

from typing import Final

from atoll.objects.store import DELETE_ALARM, KEEP_ALARM, PAGE, SET_ALARM, Commit, InvalidCommit

MAX_PAGES: Final = (10 << 30) // PAGE
MAX_COMMIT: Final = 8_192  # pages, as in the engine
CROWDED: Final = 64 << 20  # bytes of commits under way
MAX_HELD: Final = 256 << 20


def check_commit(commit: Commit, queued: int, most_pages: int) -> None:
    """Raises InvalidCommit. `queued`: the commit before it."""
    numbers = memoryview(commit.numbers)
    if commit.sequence != queued + 1:
        raise InvalidCommit(f"commit {commit.sequence} came after {queued}")
    if not 0 <= commit.pages <= most_pages:
        raise InvalidCommit(f"a commit to {commit.pages} pages, where {most_pages} are allowed")
    if len(numbers) % 4 or len(commit.contents) != len(numbers) // 4 * PAGE or len(numbers) // 4 > MAX_COMMIT:
        raise InvalidCommit(f"a commit with {len(numbers)} bytes of page numbers and {len(commit.contents)} of pages")
    if numbers and not (min(each := numbers.cast("I")) > 0 and max(each) <= commit.pages):
        raise InvalidCommit("a commit with a page number that is not in its database")
    if commit.alarm not in (KEEP_ALARM, SET_ALARM, DELETE_ALARM) or (commit.alarm == SET_ALARM and commit.alarm_ms < 0):
        raise InvalidCommit(f"a commit with the alarm {commit.alarm}, {commit.alarm_ms}")
