"""secrets_store_secret: a secret that several workers of a tenant share.

The value is read when the worker asks for it, so a new value needs no deploy.
"""

from __future__ import annotations

import re

import msgspec

from atoll.api.refusals import ApiCode, Refused
from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.secrets_store_secret.stores import SecretsStores
from atoll.bindings.services import Services
from atoll.errors import InvalidArgument

STORE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
STORE_HINT = "use up to 64 letters, digits, dots, dashes and _"
SECRET_NAME = re.compile(r"[^\s/\x00-\x1f\x7f]{1,255}")
SECRET_HINT = "use up to 255 characters, without spaces and slashes"
OPTIONAL = "?"  # begins the resource of a grant of `atoll dev`: the secret may be missing


class StoreSecretEntry(msgspec.Struct, forbid_unknown_fields=True):
    store: str
    secret: str
    local: bool = False  # sent by `atoll dev` alone


class SecretsStoreSecret(Binding):
    kind = "secrets_store_secret"
    Entry = StoreSecretEntry

    def __init__(self, services: Services) -> None:
        self.stores = SecretsStores(services.place_of("secrets_stores"), services.seals)

    def claim(self, tenant: str, entry: StoreSecretEntry) -> str:
        if not STORE_NAME.fullmatch(entry.store):
            raise InvalidArgument(f"the store is named {entry.store!r:.80}: {STORE_HINT}")
        if not SECRET_NAME.fullmatch(entry.secret):
            raise InvalidArgument(f"the secret is named {entry.secret!r:.80}: {SECRET_HINT}")
        return f"{OPTIONAL if entry.local else ''}{entry.store}/{entry.secret}"

    async def prepare(self, tenant: str, resource: str) -> None:
        if await self.exists(tenant, resource):
            return
        store, _, name = resource.partition("/")
        if not self.stores.has_store(tenant, store):
            message, command = f"there is no secrets store `{store}`", f"atoll secrets-store store create {store}"
        else:
            message = f"the secrets store `{store}` has no secret `{name}`"
            command = f"atoll secrets-store secret create {store} --name {name}"
        raise Refused(ApiCode.NOT_FOUND, message, f"make it: `{command}`")

    async def exists(self, tenant: str, resource: str) -> bool:
        return resource.startswith(OPTIONAL) or self.stores.find(tenant, *_parts(resource)) is not None

    async def holdings(self, tenant: str) -> list[str]:
        return [each.name for each in self.stores.stores_of(tenant)]

    async def forget(self, tenant: str) -> None:
        await self.stores.forget(tenant)

    async def seal_anew(self) -> None:
        await self.stores.seal_anew()

    async def close(self) -> None:
        await self.stores.close()

    @op("secrets_store_secret.get")
    def get(self, call: OpCall) -> Reply:
        """`value` is null if the secret is gone."""
        store, name = _parts(call.grant.resource)
        found = self.stores.find(call.scope.version.tenant, store, name)
        return Reply({"value": None if found is None else self.stores.value(found), "name": name})


def _parts(resource: str) -> tuple[str, str]:
    store, _, name = resource.removeprefix(OPTIONAL).partition("/")
    return store, name
