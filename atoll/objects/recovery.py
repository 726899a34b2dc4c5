"""Brings what the index knows up to date with the journal, after a start."""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from atoll.objects.alarms import Alarms
from atoll.objects.durable import COMMIT, DELETE, DELETE_NAMESPACE, Record
from atoll.objects.index import ObjectIndex
from atoll.objects.replay import FoundRecord, Replayed
from atoll.objects.table import ObjectState, ObjectTable

log = logging.getLogger("atoll.objects")

SOME = 500  # records between two pauses


class Recovery(NamedTuple):
    table: ObjectTable
    alarms: Alarms
    next_group: int
    deleted_namespaces: list[Record]
    lost: str  # not empty: why no object can be opened


async def recover(index: ObjectIndex, replayed: Replayed) -> Recovery:
    alarms = Alarms()
    stored, totals = await index.load()
    alarms.load(stored)
    table = ObjectTable(index, alarms, totals.sizes)
    table.newest_segment = replayed.next_number  # the one that comes
    recovery = Recovery(table, alarms, max(replayed.next_group, totals.last_group + 1), [], replayed.lost)
    if recovery.lost:
        log.error("no object can be used: %s. Restore a backup, or move this file away to lose it", recovery.lost)
        return recovery
    for count, found in enumerate(replayed.found, 1):
        if found.record.kind == DELETE_NAMESPACE:
            table.namespace_deleted(found.record.key.namespace)
            table.hold_segment(found.record)
            recovery.deleted_namespaces.append(found.record)
        else:
            _recover_object(table, found)
        if count % SOME == 0:
            await asyncio.sleep(0)
    for state in table.every():
        state.restart()
        state.is_replayed = bool(state.pending)
    damaged = [state for state in table.every() if state.damage != state.row.damage]
    for state in damaged:
        log.error("object %s of namespace %s is refused: %s", state.key.id, state.key.namespace, state.damage)
        state.row = state.row._replace(damage=state.damage)
    await index.put([state.row for state in damaged if state.damage is not None])
    for state in table.every():
        table.forget_if_idle(state)
    return recovery


def _recover_object(table: ObjectTable, found: FoundRecord) -> None:
    record = found.record
    state = table.state(record.key)
    if record.group <= state.row.merged_group:
        return  # it is in the file
    if record.kind == DELETE and not found.is_damaged:
        table.apply(state, record)
    elif state.damage is None:
        state.damage = _damage(state, found)
        if state.damage is None:
            table.apply(state, record)


def _damage(state: ObjectState, found: FoundRecord) -> str | None:
    record = found.record
    if found.is_damaged:
        return f"commit {record.sequence} of this object is damaged in the journal"
    if record.kind == COMMIT and record.sequence != state.sequence + 1:
        return f"commit {state.sequence + 1} of this object is missing in the journal, which has {record.sequence}"
    return None
