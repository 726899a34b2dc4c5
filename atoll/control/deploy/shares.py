"""The versions and percentages of a deployment, as they are sent and checked. Pure: no I/O, no state."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from atoll.api.refusals import bad_body
from atoll.splits import WHOLE

MAX_SHARES = 5  # each version is loaded beside the others
EXAMPLE = 'send {"versions": [{"version": 3, "percentage": 10}, {"version": 2, "percentage": 90}]}'


class WantedShare(Struct, forbid_unknown_fields=True):
    """A version by id or number, and its share of the traffic in percent, with up to two decimals."""

    version: str | int
    percentage: float


def checked_shares(wanted: Sequence[WantedShare]) -> list[tuple[str, int]]:
    """Each version as it was named, with its share in hundredths of a percent."""
    if not wanted:
        raise bad_body("`versions` is empty", EXAMPLE)
    if len(wanted) > MAX_SHARES:
        raise bad_body(f"`versions` has {len(wanted)} entries, more than the limit of {MAX_SHARES}")
    found = []
    for share in wanted:
        hundredths = round(share.percentage * 100)
        if not 0 <= share.percentage <= 100 or abs(share.percentage * 100 - hundredths) > 1e-6:
            raise bad_body(
                f"the percentage of the version `{str(share.version)[:80]}` is {share.percentage:g}",
                "use a number from 0 to 100 with at most two decimals",
            )
        if share.version in (0, ""):
            raise bad_body(f"`version` is {share.version!r}", "use the id or the number of a version")
        found.append((str(share.version), hundredths))
    total = sum(hundredths for _, hundredths in found)
    if total != WHOLE:
        raise bad_body(f"the percentages sum to {total / 100:g}, not 100", EXAMPLE)
    return found
