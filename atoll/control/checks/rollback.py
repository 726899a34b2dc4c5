"""The rollback rule of a deployment, as it is sent and checked. Pure: no I/O, no state."""

from __future__ import annotations

from msgspec import Struct

from atoll.api.refusals import bad_body

MAX_WINDOW = 3_600  # seconds
MAX_WATCH = 7 * 24 * 3_600
MAX_REQUESTS = 1_000_000


class WantedRollback(Struct, forbid_unknown_fields=True):
    """Return to an earlier deployment if more than `above` percent of the requests to a new version fail."""

    above: float
    window_seconds: int = 60  # the requests of this time count
    min_requests: int = 20  # fewer requests in the window prove nothing
    watch_seconds: int = 600  # after this time the deployment counts as healthy, and the rule ends


def checked_rollback(wanted: WantedRollback) -> WantedRollback:
    if not 0 <= wanted.above < 100:
        raise bad_body(f"`rollback.above` is {wanted.above:g}", "use a percentage from 0 to below 100")
    for name, low, high in (
        ("window_seconds", 1, MAX_WINDOW),
        ("min_requests", 1, MAX_REQUESTS),
        ("watch_seconds", wanted.window_seconds, MAX_WATCH),
    ):
        value = getattr(wanted, name)
        if not low <= value <= high:
            hint = f"use a whole number from {low:,} to {high:,}"
            if name == "watch_seconds":
                hint += ", and not less than `window_seconds`"
            raise bad_body(f"`rollback.{name}` is {value}", hint)
    return wanted
