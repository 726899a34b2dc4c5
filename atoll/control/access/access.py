"""Access to a node: tenants, their tokens and reserved hosts, the gate, and the audit log."""

from __future__ import annotations

import time
from collections.abc import Callable

from atoll.api.audit import AuditLog
from atoll.config import Settings
from atoll.control.access.gate import Gate
from atoll.control.access.reserved import Reservations
from atoll.control.access.sessions import Sessions
from atoll.control.access.tenants import Tenants
from atoll.control.access.tokens import Tokens
from atoll.db.sqlite import Database


class Access:
    def __init__(self, settings: Settings, database: Database, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.tenants = Tenants(database)
        self.tokens = Tokens(database, clock)
        self.audit = AuditLog(database, clock)
        self.reserved = Reservations(database, settings.base_domain, settings.reserved_host_days, clock)
        self.sessions = Sessions(database, self.tokens, clock)
        self.gate = Gate(settings, self.tokens, self.tenants, self.sessions, clock)
