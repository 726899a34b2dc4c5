"""Rollback rules in the rows of deployments. Functions of a connection.

A rule belongs to one deployment and ends with it. Its state changes in the transaction of the change that ends it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import apsw
import msgspec
from msgspec import Struct

from atoll.db.sqlite import rows


class PastShare(NamedTuple):
    """A version in a deployment of the history: it may be deleted by now."""

    version_id: str
    number: int
    hundredths: int


class RuleState(StrEnum):
    WATCHING = "watching"
    HEALTHY = "healthy"  # its time is over
    ROLLED_BACK = "rolled_back"
    REPLACED = "replaced"  # by another deployment
    FAILED = "failed"  # the earlier deployment could not be restored; the node's log says why


class RollbackRule(Struct, frozen=True):
    above: float  # percent of the requests to one of `watched`
    window_seconds: int
    min_requests: int
    watch_seconds: int
    ends_at: int  # ms since 1970
    watched: list[PastShare]  # the versions that got more traffic than before
    target: list[PastShare]  # the traffic to return to
    target_number: int  # of its deployment
    by_operator: bool  # whether an operator made the rule
    state: RuleState = RuleState.WATCHING


class RuleRow(NamedTuple):
    worker_id: str
    rule: str


IN_FORCE = "rule <> '' AND json_extract(rule, '$.state') = 'watching'"
# Versions that a rule of a worker may return to. They stay stored until it ends, beyond the quota if need be.
KEPT_FOR_RULES = (
    "SELECT json_extract(share.value, '$[0]') FROM deployments, json_each(rule, '$.target') AS share"
    f" WHERE deployments.worker_id = {{worker}} AND {IN_FORCE}"
)


def rule_text(rule: RollbackRule | None) -> str:
    return msgspec.json.encode(rule).decode() if rule is not None else ""


def rule_of(text: str) -> RollbackRule | None:
    return msgspec.json.decode(text, type=RollbackRule) if text else None


def rules_in_force(connection: apsw.Connection) -> dict[str, RollbackRule]:
    """By worker id."""
    found = rows(connection, RuleRow, f"SELECT worker_id, rule FROM deployments WHERE {IN_FORCE}")
    return {row.worker_id: msgspec.json.decode(row.rule, type=RollbackRule) for row in found}


def end_rule(connection: apsw.Connection, worker_id: str, state: RuleState, rule: RollbackRule | None = None) -> None:
    """End the rule that is in force for a worker: any, or only the given one."""
    sql = (
        f"UPDATE deployments SET rule = json_set(rule, '$.state', ?1) WHERE worker_id = ?2 AND {IN_FORCE}"
        " AND (?3 IS NULL OR json_extract(rule, '$.ends_at') = ?3)"
    )
    connection.execute(sql, (state.value, worker_id, rule.ends_at if rule is not None else None))


def mark_failed(connection: apsw.Connection, version_id: str) -> None:
    """A version was rolled back automatically: a later rollback does not return to it by default."""
    connection.execute("UPDATE versions SET was_active = 0 WHERE id = ?", (version_id,))
