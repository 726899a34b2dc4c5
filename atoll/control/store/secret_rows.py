"""Rows of secrets: the secrets of each version, and their sealed values. Only functions of a connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import apsw

from atoll.control.store.vault import CannotOpen, Vault
from atoll.db.sqlite import rows
from atoll.errors import StartError


class SealedSecret(NamedTuple):
    """A secret as it is stored."""

    id: str
    name: str
    sealed: bytes
    created_at: int


class Located(NamedTuple):
    """A stored secret, with the tenant, worker and name that it is bound to."""

    id: str
    tenant: str
    worker_id: str
    name: str
    sealed: bytes


def new_secret_id(version_id: str, name: str) -> str:
    """The id of a new secret, from the version that introduces it."""
    return f"{version_id}/{name}"


def is_new_in(version_id: str, secret_id: str) -> bool:
    return secret_id.startswith(f"{version_id}/")


def insert_secret(connection: apsw.Connection, worker_id: str, secret: SealedSecret) -> None:
    connection.execute(
        "INSERT INTO secrets (id, worker_id, name, sealed, created_at) VALUES (?, ?, ?, ?, ?)",
        (secret.id, worker_id, secret.name, secret.sealed, secret.created_at),
    )


def refer_to_secrets(connection: apsw.Connection, version_id: str, secrets: Mapping[str, str]) -> None:
    connection.executemany(
        "INSERT INTO version_secrets (version_id, secret_id) VALUES (?, ?)",
        [(version_id, secret_id) for secret_id in secrets.values()],
    )


def drop_unused_secrets(connection: apsw.Connection, worker_id: str) -> None:
    """Delete the secrets that no version has any more."""
    sql = "DELETE FROM secrets WHERE worker_id = ? AND id NOT IN (SELECT secret_id FROM version_secrets)"
    connection.execute(sql, (worker_id,))


def secrets_of(connection: apsw.Connection, version_id: str) -> list[SealedSecret]:
    sql = (
        "SELECT secrets.id, name, sealed, created_at FROM version_secrets JOIN secrets ON secrets.id = secret_id"
        " WHERE version_id = ? ORDER BY name"
    )
    return rows(connection, SealedSecret, sql, version_id)


def opened(secrets: list[SealedSecret], vault: Vault, tenant: str, worker_id: str) -> dict[str, str]:
    """Names and values. StartError if the root key does not match: half an environment would be worse than none."""
    try:
        return {secret.name: vault.open(secret.sealed, tenant, worker_id, secret.name) for secret in secrets}
    except CannotOpen as error:
        raise StartError(
            f"a secret of the worker {worker_id} cannot be opened: {error}",
            "put the right root-key into the data folder, or the right ATOLL_ROOT_KEY into the environment",
        ) from None


def keys_in_use(connection: apsw.Connection) -> list[int]:
    """The numbers of the root keys that secrets are sealed with."""
    found = rows(connection, bytes, "SELECT DISTINCT substr(sealed, 1, 1) FROM secrets")
    return [first[0] for first in found if first]


def seal_anew(connection: apsw.Connection, vault: Vault) -> int:
    """Seal every secret with the newest key; returns their number."""
    sql = (
        "SELECT secrets.id, tenant, worker_id, secrets.name, sealed FROM secrets JOIN workers ON workers.id = worker_id"
    )
    found = rows(connection, Located, sql)
    for row in found:
        place = (row.tenant, row.worker_id, row.name)
        sealed = vault.seal(vault.open(row.sealed, *place), *place)
        connection.execute("UPDATE secrets SET sealed = ? WHERE id = ?", (sealed, row.id))
    return len(found)
