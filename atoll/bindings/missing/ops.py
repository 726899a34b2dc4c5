"""What a config asks for and Atoll does not have, once its author chose to go on without it.

It touches nothing and has no op: its JavaScript half throws when it is used, and says what to do.
"""

from __future__ import annotations

import msgspec

from atoll.bindings.base import Binding


class MissingEntry(msgspec.Struct, forbid_unknown_fields=True):
    field: str = ""  # the one of the config that asked for it


class Missing(Binding):
    kind = "missing"
    Entry = MissingEntry
