"""`tally_watches` of a deploy: the tallies whose changes start the worker's tallied() handler."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from atoll.api.refusals import refuse_many
from atoll.manifests.trigger_fields import TriggerField

MAX_WATCHES = 10


class TallyWatch(Struct, frozen=True):
    tally: str


def checked(watches: Sequence[TallyWatch]) -> tuple[TallyWatch, ...]:
    refuse_many("tally_watches", watches, MAX_WATCHES)
    return tuple(dict.fromkeys(watches))


TRIGGER = TriggerField(name="tally_watches", entry=TallyWatch, handler="tallied", checked=checked)
