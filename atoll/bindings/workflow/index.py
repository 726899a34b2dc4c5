"""The workflows of a node by tenant and name, and their instances as they last reported themselves.

An instance is a Durable Object, which alone decides what it does. It reports every change of its status, and again
after a crash: so what is here is right a moment after, and serves lists, quotas and the end of what is kept.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import apsw
from msgspec import Struct

from atoll.bindings.workflow.entries import MAX_KEPT_MS, Workflow, ms_of
from atoll.db.sqlite import Database
from atoll.errors import QuotaExceeded

STATUSES = ("queued", "running", "paused", "errored", "terminated", "complete", "waiting", "waitingForPause")
COLUMNS = "id, tenant, name, worker, class, created_at, changed_at, steps, complete_ms, errored_ms"
INSTANCE = "name, status, created_at, changed_at, started_at, ended_at, expires_at"
EXPIRED = "SELECT workflow, name FROM instances WHERE expires_at <= ? ORDER BY expires_at LIMIT ?"


class StoredWorkflow(Struct, frozen=True):
    id: str  # a UUID
    tenant: str
    name: str
    worker: str
    class_name: str
    created_at: int
    changed_at: int
    steps: int | None = None
    complete_ms: int | None = None
    errored_ms: int | None = None

    def keeps(self, status: str, wanted: int | None) -> int:
        """How long an instance is kept after its end, in ms."""
        usual = self.complete_ms if status == "complete" else self.errored_ms
        kept = wanted if wanted is not None else usual
        return MAX_KEPT_MS if kept is None else min(kept, MAX_KEPT_MS)


class ListedInstance(Struct, frozen=True):
    name: str
    status: str
    created_at: int
    changed_at: int
    started_at: int | None = None
    ended_at: int | None = None
    expires_at: int | None = None


class WorkflowIndex:
    """Workflows in memory, instances in SQLite."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, migrations=resources.files("atoll.bindings.workflow") / "migrations")
        self._by_id: dict[str, StoredWorkflow] = {}
        self._by_name: dict[tuple[str, str], StoredWorkflow] = {}
        self._counts: Counter[str] = Counter()  # instances by workflow
        self._most: dict[str, int | None] = {}  # by tenant
        self._turn = asyncio.Lock()  # of changes of workflows
        for row in self._database.read(lambda c: list(c.execute(f"SELECT {COLUMNS} FROM workflows"))):
            self._add(StoredWorkflow(*row))
        counts = "SELECT workflow, count(*) FROM instances GROUP BY workflow"
        self._counts.update(dict(self._database.read(lambda c: list(c.execute(counts)))))

    def _add(self, workflow: StoredWorkflow) -> None:
        self._by_id[workflow.id] = workflow
        self._by_name[workflow.tenant, workflow.name] = workflow

    # --- workflows ---

    def by_id(self, id: str) -> StoredWorkflow | None:
        return self._by_id.get(id)

    def named(self, tenant: str, name: str) -> StoredWorkflow | None:
        return self._by_name.get((tenant, name))

    def of_tenant(self, tenant: str) -> list[StoredWorkflow]:
        return sorted((each for each in self._by_id.values() if each.tenant == tenant), key=lambda each: each.name)

    def of_worker(self, tenant: str, worker: str) -> list[StoredWorkflow]:
        return [each for each in self.of_tenant(tenant) if each.worker == worker]

    def all(self) -> list[StoredWorkflow]:
        return list(self._by_id.values())

    async def put(self, tenant: str, worker: str, wanted: Workflow) -> StoredWorkflow:
        """Make a workflow, or give it another class and other bounds."""
        async with self._turn:
            now = time.time_ns() // 1_000_000
            before = self.named(tenant, wanted.name)
            kept = [
                None if each is None else ms_of(each) for each in (wanted.success_retention, wanted.error_retention)
            ]
            id, created = (before.id, before.created_at) if before is not None else (str(uuid.uuid4()), now)
            made = StoredWorkflow(id, tenant, wanted.name, worker, wanted.class_name, created, now, wanted.steps, *kept)
            if before is not None and _same(before, made):
                return before
            values = tuple(getattr(made, field) for field in made.__struct_fields__)
            marks = ", ".join("?" * len(values))
            await self._write(f"INSERT OR REPLACE INTO workflows ({COLUMNS}) VALUES ({marks})", *values)
            self._add(made)
            return made

    async def drop(self, workflow: StoredWorkflow) -> None:
        """Forget a workflow and its instances. Their objects are deleted already."""
        async with self._turn:
            await self._write("DELETE FROM workflows WHERE id = ?", workflow.id)
            self._by_id.pop(workflow.id, None)
            if self.named(workflow.tenant, workflow.name) == workflow:
                del self._by_name[workflow.tenant, workflow.name]
            self._counts.pop(workflow.id, None)
        more = 1
        while more:  # each write holds up the others for a few ms only
            more = await self._database.write(lambda c: _delete_some(c, workflow.id))

    # --- instances ---

    def count(self, tenant: str) -> int:
        return sum(self._counts[each.id] for each in self._by_id.values() if each.tenant == tenant)

    def count_of(self, workflow: StoredWorkflow) -> int:
        return self._counts[workflow.id]

    def bound(self, tenant: str, most: int | None) -> None:
        self._most[tenant] = most

    def find(self, workflow: StoredWorkflow, name: str) -> ListedInstance | None:
        sql = f"SELECT {INSTANCE} FROM instances WHERE workflow = ? AND name = ?"
        row = self._database.read(lambda c: c.execute(sql, (workflow.id, name)).fetchone())
        return None if row is None else ListedInstance(*row)

    async def note(self, workflow: StoredWorkflow, instance: ListedInstance) -> None:
        """Remember an instance as it reports itself. QuotaExceeded if a new one is one too many."""
        is_new = self.find(workflow, instance.name) is None
        most = self._most.get(workflow.tenant)
        if is_new and instance.status == "queued" and most is not None and self.count(workflow.tenant) >= most:
            hint = "delete some, or raise the quota `workflow_instances`"
            raise QuotaExceeded(f"Workflow instance quota reached ({most} of {most}): {hint}")
        values = tuple(getattr(instance, field) for field in instance.__struct_fields__)
        sql = f"INSERT OR REPLACE INTO instances (workflow, {INSTANCE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

        def act(connection: apsw.Connection) -> bool:
            found = connection.execute(
                "SELECT 1 FROM instances WHERE workflow = ? AND name = ?", (workflow.id, instance.name)
            ).fetchone()
            connection.execute(sql, (workflow.id, *values))
            return found is None

        if await self._database.write(act):
            self._counts[workflow.id] += 1

    async def forget(self, workflow: StoredWorkflow, name: str) -> None:
        def act(connection: apsw.Connection) -> int:
            connection.execute("DELETE FROM instances WHERE workflow = ? AND name = ?", (workflow.id, name))
            return connection.changes()

        self._counts[workflow.id] -= await self._database.write(act)

    async def page(
        self, workflow: StoredWorkflow, status: str, offset: int, limit: int
    ) -> tuple[Sequence[ListedInstance], int]:
        """Some instances, the newest first, and how many there are."""
        where = "workflow = ?"
        values: tuple[str, ...] = (workflow.id,)
        if status:
            where, values = f"{where} AND status = ?", (workflow.id, status)
        some = f"SELECT {INSTANCE} FROM instances WHERE {where} ORDER BY created_at DESC, name LIMIT ? OFFSET ?"

        def look(connection: apsw.Connection) -> tuple[Sequence[ListedInstance], int]:
            found = [ListedInstance(*row) for row in connection.execute(some, (*values, limit, offset))]
            [(count,)] = list(connection.execute(f"SELECT count(*) FROM instances WHERE {where}", values))
            return found, count

        return await self._database.search(look)

    async def counts(self, workflow: StoredWorkflow) -> dict[str, int]:
        sql = "SELECT status, count(*) FROM instances WHERE workflow = ? GROUP BY status"
        return dict(await self._database.search(lambda c: list(c.execute(sql, (workflow.id,)))))

    def expired(self, now_ms: int, limit: int) -> list[tuple[StoredWorkflow, str]]:
        """Instances whose time is over."""
        rows = self._database.read(lambda c: list(c.execute(EXPIRED, (now_ms, limit))))
        return [(self._by_id[id], name) for id, name in rows if id in self._by_id]

    async def _write(self, sql: str, *values: str | int | None) -> None:
        def act(connection: apsw.Connection) -> None:
            connection.execute(sql, values)

        await self._database.write(act)

    async def close(self) -> None:
        await self._database.close()


def _same(one: StoredWorkflow, other: StoredWorkflow) -> bool:
    return all(getattr(one, field) == getattr(other, field) for field in one.__struct_fields__ if field != "changed_at")


def _delete_some(connection: apsw.Connection, workflow: str) -> int:
    connection.execute(
        "DELETE FROM instances WHERE workflow = ? "
        "AND name IN (SELECT name FROM instances WHERE workflow = ? LIMIT 1000)",
        (workflow, workflow),
    )
    return connection.changes()
