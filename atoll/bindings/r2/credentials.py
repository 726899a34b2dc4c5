"""Access keys of the S3 endpoint: each belongs to a tenant. Their secrets are sealed in the index."""

from __future__ import annotations

import secrets
import string

from atoll.bindings.r2.content import now_ms
from atoll.bindings.r2.records import BucketRecords, Credential
from atoll.bindings.services import Seals
from atoll.errors import QuotaExceeded

MAX_CREDENTIALS = 100  # of one tenant: all of them are in memory
PLACE = "r2"  # takes the place of a worker's id in what a secret is bound to
LETTERS = string.ascii_letters + string.digits


class Credentials:
    def __init__(self, records: BucketRecords, seals: Seals) -> None:
        self._records = records
        self._seals = seals

    async def find(self, access_key: str) -> Credential | None:
        return await self._records.credential(access_key)

    def secret(self, credential: Credential) -> str:
        """Raises CannotOpen if the root key of the node is not the one it was sealed with."""
        return self._seals.open(credential.sealed, credential.tenant, PLACE, credential.access_key)

    async def of(self, tenant: str) -> list[Credential]:
        return await self._records.credentials(tenant)

    async def create(self, tenant: str, name: str, bucket: str, can_write: bool) -> tuple[Credential, str]:
        """A new access key, and its secret, which is not shown again."""
        if len(await self.of(tenant)) >= MAX_CREDENTIALS:
            raise QuotaExceeded(f"the tenant has {MAX_CREDENTIALS} access keys: delete some")
        access_key = secrets.token_hex(16)
        secret = "".join(secrets.choice(LETTERS) for _ in range(64))
        sealed = self._seals.seal(secret, tenant, PLACE, access_key)
        made = Credential(access_key, tenant, name, bucket, int(can_write), sealed, now_ms())

        await self._records.add_credential(made)
        return made, secret

    async def delete(self, tenant: str, access_key: str) -> bool:
        found = await self.find(access_key)
        if found is None or found.tenant != tenant:
            return False
        await self._records.delete_credential(access_key)
        return True

    async def forget(self, tenant: str) -> None:
        """Delete all access keys of a tenant."""
        await self._records.forget_credentials(tenant)

    async def seal_anew(self) -> None:
        """Seal every secret with the newest root key."""
        fresh = [
            each._replace(sealed=self._seals.seal(self.secret(each), each.tenant, PLACE, each.access_key))
            for each in await self._records.credentials()
        ]
        await self._records.seal_credentials(fresh)
