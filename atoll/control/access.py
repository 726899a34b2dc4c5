"""Who may do what on a node: its tenants, their tokens, the gate that reads them, and the log of what was done."""

from __future__ import annotations

import time
from collections.abc import Callable

from atoll.config import Settings
from atoll.control.audit import AuditLog
from atoll.control.gate import Gate
from atoll.control.tenants import Tenants
from atoll.control.tokens import Tokens
from atoll.db.sqlite import Database


class Access:
    def __init__(self, settings: Settings, database: Database, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.tenants = Tenants(database)
        self.tokens = Tokens(database, clock)
        self.audit = AuditLog(database, clock)
        self.gate = Gate(settings, self.tokens, self.tenants, clock)
