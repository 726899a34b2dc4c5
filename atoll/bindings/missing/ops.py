"""The stand-in for a binding that a config names and Atoll does not have, if the author deploys anyway.

It has no op: its JavaScript half throws when it is used, and says what to do.
"""

from __future__ import annotations

import msgspec

from atoll.bindings.base import Binding


class MissingEntry(msgspec.Struct, forbid_unknown_fields=True):
    field: str = ""  # the field of the config that names it


class Missing(Binding):
    kind = "missing"
    Entry = MissingEntry
