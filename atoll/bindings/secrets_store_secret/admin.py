"""Secrets stores over HTTP. Values are never shown."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.paging import name_page_of, name_query, page_answer
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import Route, caller_of, json_answer, no_content, read_shape
from atoll.bindings.secrets_store_secret.ops import SECRET_HINT, SECRET_NAME, STORE_HINT, STORE_NAME
from atoll.bindings.secrets_store_secret.stores import SecretsStore, SecretsStores, StoredSecret
from atoll.clock import iso_time
from atoll.errors import QuotaExceeded

MAX_BYTES = 64 * 1024  # of a value
MAX_COMMENT = 1_024  # characters


class NewStore(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class StoreAnswer(msgspec.Struct):
    name: str
    secrets: int
    created_at: str


class StoresAnswer(msgspec.Struct, omit_defaults=True):
    stores: list[StoreAnswer]
    cursor: str = ""


class SecretValue(msgspec.Struct, forbid_unknown_fields=True):
    value: str
    comment: str = ""


class StoreSecretAnswer(msgspec.Struct):
    name: str
    comment: str
    created_at: str
    changed_at: str


class StoreSecretsAnswer(msgspec.Struct, omit_defaults=True):
    secrets: list[StoreSecretAnswer]
    cursor: str = ""


class SecretsStoresApi:
    def __init__(self, stores: SecretsStores, audit: AuditLog) -> None:
        self._stores = stores
        self._audit = audit

    def routes(self) -> list[Route]:
        read, change, query = Scope.READ, Scope.DEPLOY, name_query()
        all_of_them, one = "/api/secrets-stores", "/api/secrets-stores/{store}"
        secrets, secret = f"{one}/secrets", one + "/secrets/{secret}"
        return [
            Route(
                "GET", all_of_them, self.list, read, "The secrets stores of a tenant, by name", gives=StoresAnswer,
                query=query,
            ),
            Route(
                "POST", all_of_them, self.create, change, "Make a secrets store", takes=NewStore, gives=StoreAnswer,
                status=201,
            ),
            Route("DELETE", one, self.delete, change, "Delete a secrets store with its secrets", status=204),
            Route(
                "GET", secrets, self.list_secrets, read, "The secrets of a store, without their values",
                gives=StoreSecretsAnswer, query=query,
            ),
            Route("GET", secret, self.get, read, "A secret, without its value", gives=StoreSecretAnswer),
            Route(
                "PUT", secret, self.put, change, "Make a secret, or change its value", takes=SecretValue,
                gives=StoreSecretAnswer,
            ),
            Route("DELETE", secret, self.delete_secret, change, "Delete a secret", status=204),
        ]  # fmt: skip

    # --- stores ---

    def _store(self, request: Request) -> SecretsStore:
        name = request.path_params["store"]
        found = self._stores.store(caller_of(request).tenant, name)
        if found is None:
            hint = "GET /api/secrets-stores lists the stores"
            raise Refused(ApiCode.NOT_FOUND, f"there is no secrets store `{name[:80]}`", hint)
        return found

    def _shown(self, store: SecretsStore) -> StoreAnswer:
        count = len(self._stores.secrets_of(store.tenant, store.name))
        return StoreAnswer(store.name, count, iso_time(store.created_at))

    async def list(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("stores", self._listed(caller_of(request).tenant, after), limit)

    async def _listed(self, tenant: str, after: str) -> AsyncIterator[tuple[str, StoreAnswer]]:
        for each in self._stores.stores_of(tenant):
            if each.name > after:
                yield each.name, self._shown(each)

    async def create(self, request: Request) -> Response:
        body, caller = await read_shape(request, NewStore), caller_of(request)
        if not STORE_NAME.fullmatch(body.name):
            raise bad_body(f"`name` is {body.name!r:.80}", STORE_HINT)
        if self._stores.has_store(caller.tenant, body.name):
            raise Refused(ApiCode.NAME_TAKEN, f"a secrets store named `{body.name}` already exists")
        await self._audit.note(caller, "secrets_store.create", body.name)
        try:
            made = await self._stores.make_store(caller.tenant, body.name)
        except QuotaExceeded as error:
            raise Refused(ApiCode.QUOTA, str(error), "delete a store") from None
        return json_answer(self._shown(made), status=201, headers={"location": f"/api/secrets-stores/{body.name}"})

    async def delete(self, request: Request) -> Response:
        name = self._store(request).name
        await self._audit.note(caller_of(request), "secrets_store.delete", name)
        await self._stores.delete_store(caller_of(request).tenant, name)
        return no_content()

    # --- secrets ---

    def _secret(self, request: Request) -> StoredSecret:
        store, name = self._store(request), request.path_params["secret"]
        found = self._stores.find(store.tenant, store.name, name)
        if found is None:
            message = f"the secrets store `{store.name}` has no secret `{name[:80]}`"
            raise Refused(ApiCode.NOT_FOUND, message, f"GET /api/secrets-stores/{store.name}/secrets lists them")
        return found

    async def list_secrets(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("secrets", self._listed_secrets(self._store(request), after), limit)

    async def _listed_secrets(self, store: SecretsStore, after: str) -> AsyncIterator[tuple[str, StoreSecretAnswer]]:
        for each in self._stores.secrets_of(store.tenant, store.name):
            if each.name > after:
                yield each.name, _shown_secret(each)

    async def get(self, request: Request) -> Response:
        return json_answer(_shown_secret(self._secret(request)))

    async def put(self, request: Request) -> Response:
        body, store, name = await read_shape(request, SecretValue), self._store(request), request.path_params["secret"]
        if not SECRET_NAME.fullmatch(name):
            raise bad_body(f"the secret is named {name!r:.80}", SECRET_HINT)
        try:
            size = len(body.value.encode())
        except UnicodeEncodeError:
            raise bad_body("`value` is no valid Unicode", "encode binary data as text, such as base64") from None
        if not 1 <= size <= MAX_BYTES:
            raise bad_body(f"`value` has {size:,} bytes", f"a secret has 1 to {MAX_BYTES:,} bytes")
        if len(body.comment) > MAX_COMMENT:
            raise bad_body(f"`comment` has {len(body.comment):,} characters", f"the limit is {MAX_COMMENT:,}")
        await self._audit.note(caller_of(request), "secrets_store.put", f"{store.name}/{name}")
        try:
            made = await self._stores.put(store.tenant, store.name, name, body.value, body.comment)
        except QuotaExceeded as error:
            raise Refused(ApiCode.QUOTA, str(error), "delete a secret") from None
        return json_answer(_shown_secret(made))

    async def delete_secret(self, request: Request) -> Response:
        found = self._secret(request)
        await self._audit.note(caller_of(request), "secrets_store.delete_secret", f"{found.store}/{found.name}")
        await self._stores.delete(found.tenant, found.store, found.name)
        return no_content()


def _shown_secret(each: StoredSecret) -> StoreSecretAnswer:
    return StoreSecretAnswer(each.name, each.comment, iso_time(each.created_at), iso_time(each.changed_at))
