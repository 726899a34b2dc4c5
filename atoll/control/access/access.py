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
from atoll.db.shared import SharedDatabase
from atoll.db.sqlite import Database
from atoll.db.touched import Touched


class Access:
    def __init__(self, settings: Settings, database: Database, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.tenants = Tenants(database)
        self.tokens = Tokens(database, clock)
        self.audit = AuditLog(database, clock)
        self.reserved = Reservations(database, settings.base_domain, settings.reserved_host_days, clock)
        self.sessions = Sessions(database, self.tokens, clock)
        self.gate = Gate(settings, self.tokens, self.tenants, self.sessions, clock)
        if isinstance(database, SharedDatabase):
            database.listen(self._follow)

    async def _follow(self, touched: Touched) -> None:
        """Take over what another node has changed."""
        tables = {table for table, _ in touched.keys}
        self.tenants.follow(str(name) for table, name in touched.keys if table == "tenants")
        self.tokens.follow(str(id) for table, id in touched.keys if table == "tokens")
        self.sessions.follow(key for table, key in touched.keys if table == "sessions")
        if "reserved_hosts" in tables:
            self.reserved.load()
