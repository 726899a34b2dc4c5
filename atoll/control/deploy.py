"""A deploy from body to traffic: check, try in an engine, store, switch, retire. And what is deployed now.

The order is the promise. Until the store has committed, nothing but a spare isolate knows of the new version; once it
has, a restart brings the new one up; the switch of the router is one assignment on the event loop with no await between
it and the commit's answer. So a crash or an error at any step leaves the old version or the new one, never a mix.

One change of a worker at a time: a second one is refused, because whoever sent it has not seen the first. A change runs
to its end even when the client that asked for it goes away, since half a change is the one thing nobody asked for.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from msgspec import UNSET

from atoll.config import Settings
from atoll.control.audit import Mark
from atoll.control.bindings import Kinds, refuse_gone_bindings
from atoll.control.callers import LOCAL, Caller
from atoll.control.check import DeployBody, checked_name
from atoll.control.draft import Identity, changed_draft, new_draft, secret_draft
from atoll.control.ids import random_id
from atoll.control.quotas import QuotaRules, capped, script_bytes, settings_of
from atoll.control.refusals import ApiCode, Refused, load_refusal, refuse_uncallable
from atoll.control.routes import RouteRules
from atoll.control.tenants import Tenants
from atoll.control.workers import KEPT_VERSIONS, Deployment, WorkerStore
from atoll.errors import EngineError, LoadFailed
from atoll.observe.sourcemaps import SourceMaps, decoded, mapped_failure
from atoll.observe.store import LogStore
from atoll.router import BadPattern, Router, RouteTaken
from atoll.triggers.triggers import BadTrigger
from atoll.workers import Version

T = TypeVar("T")

log = logging.getLogger("atoll.control")


class Loaded(Protocol):
    """What an engine found out about a version."""

    @property
    def handlers(self) -> tuple[str, ...]: ...
    @property
    def startup_ms(self) -> float: ...


class Checker(Protocol):
    """The engines, as far as a deploy needs them: engine.pool.Pool."""

    async def check(self, version: Version) -> Loaded: ...
    def retire(self, version: Version) -> None: ...


class Triggers(Protocol):
    """What starts workers besides requests: triggers.triggers.Triggers."""

    def check(self, version: Version, handlers: Sequence[str]) -> None: ...
    async def prepare(self, version: Version) -> None: ...
    def put(self, version: Version) -> None: ...
    async def drop(self, worker_id: str) -> None: ...


Save: TypeAlias = Callable[[Deployment, Mark], Coroutine[None, None, Deployment]]


class Deployer:
    def __init__(
        self,
        settings: Settings,
        store: WorkerStore,
        checker: Checker,
        router: Router,
        logs: LogStore,
        kinds: Kinds,
        triggers: Triggers,
        tenants: Tenants,
        *,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[str], str] = random_id,
    ) -> None:
        self._settings = settings
        self._store = store
        self._checker = checker
        self._router = router
        self._logs = logs
        self._kinds = kinds
        self._triggers = triggers
        self._tenants = tenants
        self._quotas = QuotaRules(tenants)
        self._rules = RouteRules(router, tenants)
        self._clock = clock
        self._new_id = new_id
        self.maps = SourceMaps(store.source_maps)  # for the stacks of every version
        # What the router points to now
        self._live: dict[str, Deployment] = {}  # by worker id
        self._ids: dict[str, str] = {}  # name -> worker id
        self.changes: Counter[str] = Counter()  # that were asked for, by what became of them
        # Changes under way
        self._changing: set[str] = set()  # names
        self._tasks: set[asyncio.Task[object]] = set()
        # Held from the last look at the routes until they are taken: two workers may want what only one can have
        self.turn = asyncio.Lock()

    # What is deployed

    def all(self, tenant: str | None = None) -> list[Deployment]:
        """Every worker, or every one of a tenant, by name."""
        found = (each for each in self._live.values() if tenant is None or each.version.tenant == tenant)
        return sorted(found, key=lambda deployment: deployment.name)

    def find(self, id_or_name: str, by: Caller) -> Deployment:
        """A worker of the caller's tenant. Those of others do not exist for it."""
        deployment = self._live.get(self._ids.get(id_or_name, id_or_name))
        if deployment is None or deployment.version.tenant != by.tenant:
            raise Refused(
                ApiCode.NO_WORKER,
                f"there is no worker `{id_or_name[:80]}`",
                "GET /api/workers lists them; POST /api/workers makes one",
            )
        return deployment

    def active(self, worker_id: str) -> Version | None:
        """The version of a worker that answers now."""
        deployment = self._live.get(worker_id)
        return deployment.version if deployment is not None else None

    def active_named(self, tenant: str, name: str) -> Version | None:
        """The same by name, for a worker of that tenant. Every call of a service asks."""
        version = self.active(self._ids.get(name, ""))
        return version if version is not None and version.tenant == tenant else None

    def version(self, deployment: Deployment, reference: str) -> Deployment:
        """One of the versions of a worker, by id or number; `deployment` is the worker."""
        found = self._store.version(deployment.id, reference)
        if found is None:
            raise Refused(
                ApiCode.NOT_FOUND,
                f"`{deployment.name}` has no version `{reference[:80]}`",
                f"GET /api/workers/{deployment.name}/versions lists them; the newest {KEPT_VERSIONS} are kept",
            )
        return found

    async def usage(self, tenant: str) -> dict[str, int]:
        """What a tenant has of that which quotas bound."""
        found = self.all(tenant)
        used = {"workers": len(found), "script_bytes": sum(map(script_bytes, found))}
        for binding in self._kinds.values():
            used |= await binding.usage(tenant)
        return used

    async def holdings(self, tenant: str) -> list[str]:
        """What a tenant has besides tokens, in words: it cannot go while it has something."""
        kept = [f"{kind} {name}" for kind, binding in self._kinds.items() for name in await binding.holdings(tenant)]
        return [f"worker {deployment.name}" for deployment in self.all(tenant)] + kept

    async def forget_tenant(self, tenant: str) -> None:
        """A tenant is gone: so is what bindings keep of it that is nobody's holding, such as a cache."""
        for binding in self._kinds.values():
            await binding.forget(tenant)

    def restore(self) -> int:
        """Put every stored worker before the router, as at the end of the last run; returns how many there are."""
        stored = self._store.load_all()
        for deployment in stored:  # first all names: whose a host is does not depend on the order
            self._router.put(deployment.name, deployment.version)
        for deployment in map(self._capped, stored):
            try:
                self._switch(deployment, deployment.routes)
            except (BadPattern, RouteTaken) as error:  # the node's own names have changed since the deploy
                log.error("the worker %s gets none of its routes: %s", deployment.name, error)
                self._switch(deployment, ())
        self._logs.forget_strangers()
        return len(stored)

    # Changing it

    async def create(self, body: DeployBody, by: Caller = LOCAL) -> Deployment:
        name = checked_name(body.name)
        self._refuse_control_host(name)
        return await self._alone(name, self._create(name, body, by))

    async def update(self, id_or_name: str, body: DeployBody, by: Caller = LOCAL) -> Deployment:
        name = self.find(id_or_name, by).name
        if body.name is not UNSET and body.name != name:
            raise Refused(
                ApiCode.BAD_NAME, f"the worker is named `{name}`", "a name cannot change: deploy a new worker"
            )
        return await self._alone(name, self._update(name, body, by))

    async def activate(
        self, id_or_name: str, reference: str, by: Caller = LOCAL, note: str = "", force: bool = False
    ) -> Deployment:
        """Go back, or forward, to a version that the worker has already. No reference: the one before the active."""
        name = self.find(id_or_name, by).name
        return await self._alone(name, self._return_to(name, reference, by, note, force))

    async def put_secret(self, id_or_name: str, secret: str, value: str, by: Caller = LOCAL) -> Deployment:
        """Give a worker a secret, in a new version that answers at once."""
        name = self.find(id_or_name, by).name
        return await self._alone(name, self._change_secret(name, secret, value, by))

    async def delete_secret(self, id_or_name: str, secret: str, by: Caller = LOCAL) -> Deployment:
        name = self.find(id_or_name, by).name
        return await self._alone(name, self._change_secret(name, secret, None, by))

    async def rotate_key(self, by: Caller = LOCAL) -> tuple[int, int]:
        """Seal every secret with a new root key; its number, and how many there were.

        A root key from the environment is not ours to make: then everything is sealed with the newest of those there.
        """
        vault = self._store.vault
        async with self.turn:  # no deploy seals with the key that goes
            if not vault.is_from_environment:
                vault.add_key()
            count = await self._store.seal_anew(Mark.of(by, self._clock()))
            if not vault.is_from_environment:
                vault.drop_old_keys()
        return vault.key_id, count

    async def delete(self, id_or_name: str, by: Caller = LOCAL) -> None:
        name = self.find(id_or_name, by).name
        await self._alone(name, self._delete(name, by))

    async def close(self) -> None:
        """Wait for the changes under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _alone(self, name: str, change: Coroutine[None, None, T]) -> T:
        """Run a change unless another one of the same worker is running, to its end whatever happens to the caller."""
        if name in self._changing:
            change.close()
            raise Refused(
                ApiCode.CONCURRENT, f"another change of `{name}` is under way", "look at its result, then try again"
            )
        self._changing.add(name)

        async def run() -> T:
            result = "failed"
            try:
                changed = await change
                result = "ok"
                return changed
            except Refused:
                result = "refused"
                raise
            finally:
                self.changes[result] += 1
                self._changing.discard(name)

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _create(self, name: str, body: DeployBody, by: Caller) -> Deployment:
        if name in self._ids:
            is_mine = self._live[self._ids[name]].version.tenant == by.tenant
            hint = f"to update it: PUT /api/workers/{name}" if is_mine else "names are unique on a node: choose another"
            raise Refused(ApiCode.NAME_TAKEN, f"a worker named `{name}` exists already", hint)
        self._quotas.refuse_one_more(by.tenant, self.all(by.tenant))
        identity = Identity(self._new_id("worker"), name, by.tenant, self._new_id("version"), by.name, self._clock())
        draft = new_draft(body, identity, self._settings_of(by.tenant), self._router, self._kinds)
        return await self._activate(draft, self._store.create, by)

    async def _update(self, name: str, body: DeployBody, by: Caller) -> Deployment:
        current = self.find(name, by)
        identity = Identity(current.id, name, by.tenant, self._new_id("version"), by.name, self._clock())
        maps = self._store.source_maps(current.version.id)
        draft = changed_draft(body, identity, current, maps, self._settings_of(by.tenant), self._router, self._kinds)
        return await self._activate(draft, self._store.update, by)

    async def _change_secret(self, name: str, secret: str, value: str | None, by: Caller) -> Deployment:
        current = self.find(name, by)
        if value is None and secret not in current.secrets:
            raise Refused(ApiCode.NOT_FOUND, f"`{name}` has no secret `{secret[:80]}`", "GET …/secrets lists them")
        identity = Identity(current.id, name, by.tenant, self._new_id("version"), by.name, self._clock())
        draft = secret_draft(current, identity, secret, value)
        maps = self._store.source_maps(current.version.id)
        save = partial(self._store.update, action=f"secret.{'delete' if value is None else 'put'}")
        return await self._activate(replace(draft, source_maps=maps), save, by, secret)

    async def _return_to(self, name: str, reference: str, by: Caller, note: str, force: bool) -> Deployment:
        current = self.find(name, by)
        wanted = self._capped(self.version(current, reference or self._before(current)))
        if wanted.version.id == current.version.id:
            return current
        if wanted.secrets != current.secrets and not force:
            changed = sorted(set(wanted.secrets.items()) ^ set(current.secrets.items()))
            raise Refused(
                ApiCode.SECRETS_CHANGED,
                f"secrets have changed since: {', '.join(dict.fromkeys(secret for secret, _ in changed))}",
                "with force the version comes back with the secrets it had then",
            )
        if not force:
            await refuse_gone_bindings(wanted.version, self._kinds)
        draft = replace(wanted, updated_at=int(self._clock() * 1000))
        return await self._activate(draft, self._store.activate, by, note)

    def _before(self, current: Deployment) -> str:
        """The newest version older than the active one: where a rollback goes when nobody says where."""
        for version in self._store.versions(current.id):
            if version.number < current.number:
                return version.id
        raise Refused(ApiCode.NOT_FOUND, f"`{current.name}` has no version before the active one", "deploy another")

    async def _delete(self, name: str, by: Caller) -> None:
        deployment = self.find(name, by)
        await self._store.delete(deployment, Mark.of(by, self._clock()))
        self._router.drop(name)
        del self._live[deployment.id], self._ids[name]
        self._logs.drop(deployment.id)
        await self._triggers.drop(deployment.id)
        self._checker.retire(deployment.version)

    async def _activate(self, draft: Deployment, save: Save, by: Caller, note: str = "") -> Deployment:
        self._rules.refuse_foreign(draft.routes, by)
        self._rules.refuse_taken(draft)  # early, since the engine's part is the dear one
        self._quotas.refuse_too_large(draft, self.all(by.tenant))
        loaded = await self._check(draft)
        try:
            refuse_uncallable(loaded.handlers)
            self._check_triggers(draft.version, loaded)
            for grant in draft.version.grants.values():
                await self._kinds[grant.kind].prepare(draft.version.tenant, grant.resource)
            await self._triggers.prepare(draft.version)
            async with self.turn:
                self._tenants.find(by.tenant)
                self._rules.refuse_taken(draft)
                if draft.id not in self._live:
                    self._quotas.refuse_one_more(by.tenant, self.all(by.tenant))
                self._quotas.refuse_too_large(draft, self.all(by.tenant))
                self._check_triggers(draft.version, loaded)
                checked = replace(draft, handlers=tuple(loaded.handlers), startup_ms=loaded.startup_ms)
                stored = await save(checked, Mark.of(by, self._clock(), note))
                old = self._live.get(stored.id)
                self._switch(stored, stored.routes)
        except BaseException:
            self._checker.retire(draft.version)
            raise
        if old is not None:
            self._checker.retire(old.version)
        most = self._tenants.quotas(by.tenant).script_bytes
        if most is not None:
            await self._store.trim_history(by.tenant, most)
        log.info("%s answers with version %d (%s)", stored.name, stored.number, stored.version.id)
        return stored

    def _check_triggers(self, version: Version, loaded: Loaded) -> None:
        try:
            self._triggers.check(version, loaded.handlers)
        except BadTrigger as error:
            code = ApiCode.TRIGGER_TAKEN if error.is_taken else ApiCode.BAD_TRIGGER
            raise Refused(code, str(error), error.hint) from None

    async def _check(self, draft: Deployment) -> Loaded:
        version = draft.version
        try:
            return await self._checker.check(version)
        except LoadFailed as error:
            maps = await asyncio.to_thread(decoded, draft.source_maps)
            raise load_refusal(mapped_failure(error.failure, maps)) from None
        except EngineError as error:
            log.warning("no engine could check %s: %s", version.worker_name, error)
            raise Refused(
                ApiCode.UNAVAILABLE, "no engine could check the worker", "nothing was changed; try again"
            ) from None

    def _switch(self, deployment: Deployment, routes: Sequence[str]) -> None:
        self._router.put(deployment.name, deployment.version, routes)
        self._live[deployment.id] = deployment
        self._ids[deployment.name] = deployment.id
        self._logs.open(deployment.id)
        self._triggers.put(deployment.version)

    def _settings_of(self, tenant: str) -> Settings:
        return settings_of(self._settings, self._tenants.quotas(tenant))

    def _capped(self, stored: Deployment) -> Deployment:
        """A stored version within the caps of node and tenant, which may have become lower since it was made."""
        limits = capped(stored.version.limits, self._settings_of(stored.version.tenant))
        return replace(stored, version=replace(stored.version, limits=limits))

    def _refuse_control_host(self, name: str) -> None:
        host = f"{name}.{self._settings.base_domain}"
        if self._router.is_control(host.encode()):
            raise Refused(ApiCode.BAD_NAME, f"{host} is a control host of this node", "choose another name")
