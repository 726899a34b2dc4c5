"""How a deploy asks for events that a binding delivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct


class TriggerField(Struct, frozen=True, kw_only=True):
    """A field of a deploy that asks for events: a list whose entries have one type."""

    name: str
    entry: Any  # the type of an entry, as msgspec takes it
    handler: str  # what the worker must export; "": nothing of its own
    checked: Callable[[Sequence[Any]], Sequence[Any]]  # the entries as they are stored; Refused if they are wrong
    names_worker: Callable[[Any], str] | None = None  # the tenant's worker that an entry of a config names
    # (worker, entry or "", query of /cdn-cgi/handler/<handler>) -> path and body of the control API that starts the
    # event now, for `atoll dev`. ValueError, in words, if the query is wrong.
    run_now: Callable[[str, str, Mapping[str, str]], tuple[str, dict[str, Any]]] | None = None
