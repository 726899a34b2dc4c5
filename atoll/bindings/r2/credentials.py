"""Access keys of the S3 endpoint: each belongs to a tenant. Their secrets are sealed in the index."""

from __future__ import annotations

import secrets
import string
from typing import NamedTuple

import apsw

from atoll.bindings.r2.content import now_ms
from atoll.bindings.services import Seals
from atoll.db.sqlite import Database, rows
from atoll.errors import QuotaExceeded

MAX_CREDENTIALS = 100  # of one tenant: all of them are in memory
PLACE = "r2"  # takes the place of a worker's id in what a secret is bound to
LETTERS = string.ascii_letters + string.digits

ALL = "SELECT access_key, tenant, name, bucket, can_write, sealed, created_at FROM credentials"
INSERT = (
    "INSERT INTO credentials (access_key, tenant, name, bucket, can_write, sealed, created_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)


class Credential(NamedTuple):
    access_key: str
    tenant: str
    name: str  # what it is for, in the words of its creator
    bucket: str  # "" for all buckets of the tenant
    can_write: int
    sealed: bytes
    created_at: int

    def may(self, bucket: str, writes: bool) -> bool:
        return (not self.bucket or self.bucket == bucket) and (bool(self.can_write) or not writes)


class Credentials:
    def __init__(self, database: Database, seals: Seals) -> None:
        self._database = database
        self._seals = seals
        found = database.read(lambda connection: rows(connection, Credential, ALL))
        self._known = {each.access_key: each for each in found}

    def find(self, access_key: str) -> Credential | None:
        return self._known.get(access_key)

    def secret(self, credential: Credential) -> str:
        """Raises CannotOpen if the root key of the node is not the one it was sealed with."""
        return self._seals.open(credential.sealed, credential.tenant, PLACE, credential.access_key)

    def of(self, tenant: str) -> list[Credential]:
        return sorted(each for each in self._known.values() if each.tenant == tenant)

    async def create(self, tenant: str, name: str, bucket: str, can_write: bool) -> tuple[Credential, str]:
        """A new access key, and its secret, which is not shown again."""
        if len(self.of(tenant)) >= MAX_CREDENTIALS:
            raise QuotaExceeded(f"the tenant has {MAX_CREDENTIALS} access keys: delete some")
        access_key = secrets.token_hex(16)
        secret = "".join(secrets.choice(LETTERS) for _ in range(64))
        sealed = self._seals.seal(secret, tenant, PLACE, access_key)
        made = Credential(access_key, tenant, name, bucket, int(can_write), sealed, now_ms())

        def act(connection: apsw.Connection) -> None:
            connection.execute(INSERT, made)

        await self._database.write(act)
        self._known[access_key] = made
        return made, secret

    async def delete(self, tenant: str, access_key: str) -> bool:
        found = self._known.get(access_key)
        if found is None or found.tenant != tenant:
            return False
        await self._forget("access_key = ?", access_key)
        self._known.pop(access_key, None)
        return True

    async def forget(self, tenant: str) -> None:
        """Delete all access keys of a tenant."""
        await self._forget("tenant = ?", tenant)
        for each in self.of(tenant):
            del self._known[each.access_key]

    async def _forget(self, which: str, value: str) -> None:
        def act(connection: apsw.Connection) -> None:
            connection.execute(f"DELETE FROM credentials WHERE {which}", (value,))

        await self._database.write(act)

    async def seal_anew(self) -> None:
        """Seal every secret with the newest root key."""
        fresh = [
            each._replace(sealed=self._seals.seal(self.secret(each), each.tenant, PLACE, each.access_key))
            for each in self._known.values()
        ]

        def act(connection: apsw.Connection) -> None:
            values = [(each.sealed, each.access_key) for each in fresh]
            connection.executemany("UPDATE credentials SET sealed = ? WHERE access_key = ?", values)

        await self._database.write(act)
        self._known = {each.access_key: each for each in fresh}
