"""env.NAME of static assets, and the store behind it.

`fetch` of env.NAME is an op of the fetch binding (bindings/fetch), which finds the files of the worker's own version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from atoll.api.signatures import Signer
from atoll.asset_files.rows import AssetBound
from atoll.asset_files.store import AssetStore
from atoll.bindings.assets.uploads import UploadSessions
from atoll.bindings.base import Binding
from atoll.bindings.services import Services
from atoll.workers import Grant, Version

CONTENT: Final = "content"  # the resource of a grant


class AssetsEntry(msgspec.Struct, forbid_unknown_fields=True):
    """`as_content`: the files as the KV namespace that Workers Sites have, each under its path with a hash."""

    as_content: bool = False


class Assets(Binding):
    kind = "assets"
    Entry = AssetsEntry

    def __init__(self, services: Services) -> None:
        self.store = services.files or AssetStore(services.database, services.settings.data)
        self.settings = services.settings
        self.sessions = UploadSessions()
        self.signer = Signer()

    def claim(self, tenant: str, entry: AssetsEntry) -> str:
        return CONTENT if entry.as_content else ""

    def facts(self, version: Version, grant: Grant) -> Mapping[str, Any] | None:
        return {"asContent": True} if grant.resource == CONTENT else None

    async def usage(self, tenant: str) -> dict[str, int]:
        size = await self.store.usage(tenant)
        return {"asset_bytes": size.bytes, "asset_count": size.files}

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        self.store.bound(tenant, AssetBound(most["asset_bytes"], most["asset_count"]))

    async def forget(self, tenant: str) -> None:
        await self.store.forget(tenant)

    async def close(self) -> None:
        await self.store.close()
