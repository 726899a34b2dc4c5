"""env.NAME of static assets, and the store behind it.

`fetch` of env.NAME is an op of the fetch binding (bindings/fetch), which finds the files of the worker's own version.
"""

from __future__ import annotations

from collections.abc import Mapping

from atoll.asset_files.rows import AssetBound
from atoll.asset_files.store import AssetStore
from atoll.bindings.base import Binding
from atoll.bindings.services import Services


class Assets(Binding):
    kind = "assets"

    def __init__(self, services: Services) -> None:
        self.store = services.files or AssetStore(services.database, services.settings.data)
        self.settings = services.settings

    async def usage(self, tenant: str) -> dict[str, int]:
        size = await self.store.usage(tenant)
        return {"asset_bytes": size.bytes, "asset_count": size.files}

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        self.store.bound(tenant, AssetBound(most["asset_bytes"], most["asset_count"]))

    async def forget(self, tenant: str) -> None:
        await self.store.forget(tenant)

    async def close(self) -> None:
        await self.store.close()
