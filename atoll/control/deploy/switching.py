"""The switch to new versions: check, load in an engine, store, switch, unload the old versions.

The order is the promise. Until the store has committed, only a spare isolate knows the new version. Once it has
committed, a restart loads the new version. The switch of the router is one assignment on the event loop, with no await
between it and the result of the commit. So a crash or an error at any step leaves the old versions or the new ones,
never a mix.

A worker changes once at a time. A second change is refused, because its sender has not seen the first one. A change
runs to its end even if the client disconnects, so no change is left half done.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from msgspec import Struct, UnsetType, field

from atoll.api.audit import Mark
from atoll.api.callers import Caller
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.asset_files.store import AssetStore
from atoll.config import Settings
from atoll.control.access.reserved import Reservations
from atoll.control.access.tenants import Tenants
from atoll.control.checks.bindings import Kinds
from atoll.control.checks.rollback import WantedRollback, checked_rollback
from atoll.control.deploy.deployed import Deployed
from atoll.control.deploy.health import Health, Verdict, Watch
from atoll.control.deploy.load_refusals import load_refusal, refuse_uncallable, told_to_the_deployer
from atoll.control.deploy.neighbours import Checker, DeployTriggers, Loaded, StartsCalls
from atoll.control.deploy.previews import Previews
from atoll.control.deploy.quotas import QuotaRules, capped, script_bytes, settings_of
from atoll.control.deploy.route_rules import RouteRules
from atoll.control.deploy.sharing import check_stored, refuse_unshared
from atoll.control.ids import random_id
from atoll.control.store.deployment_rows import DeployedShare
from atoll.control.store.rollback_rows import PastShare, RollbackRule, RuleState
from atoll.control.store.workers import KEPT_VERSIONS, Deployment, WorkerStore
from atoll.errors import EngineError, LoadFailed
from atoll.observe.meter import Meter
from atoll.observe.sourcemaps import SourceMaps
from atoll.observe.store import LogStore
from atoll.router import BadPattern, Router, RouteTaken
from atoll.splits import WHOLE, Share, Split
from atoll.workers import Version

T = TypeVar("T")

log = logging.getLogger("atoll.control")


Save: TypeAlias = Callable[[Deployment, Mark], Coroutine[None, None, Deployment]]


class DeployerParts(Struct, frozen=True):
    """The services that a deploy uses."""

    settings: Settings
    store: WorkerStore
    checker: Checker
    router: Router
    logs: LogStore
    kinds: Kinds
    triggers: DeployTriggers
    tenants: Tenants
    reserved: Reservations
    files: AssetStore | None = None
    refused: Mapping[str, str] = {}  # kinds of bindings that this node refuses (sharing.py)
    meter: Meter = field(default_factory=Meter)
    calls: StartsCalls | None = None  # for drafts that are run once


class Switching(Deployed):
    """The deployed workers, and how they change."""

    def __init__(
        self,
        parts: DeployerParts,
        *,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
        new_id: Callable[[str], str] = random_id,
    ) -> None:
        super().__init__()
        self._settings = parts.settings
        self._store = parts.store
        self._checker = parts.checker
        self._router = parts.router
        self._logs = parts.logs
        self._kinds = parts.kinds
        self._triggers = parts.triggers
        self._tenants = parts.tenants
        self._reserved = parts.reserved
        self._files = parts.files
        self._refused = parts.refused
        self._quotas = QuotaRules(parts.tenants)
        self.rules = RouteRules(parts.router, parts.tenants, parts.reserved)
        is_on = parts.settings.preview_urls == "on"
        self.previews = Previews(self, parts.store, parts.router, self.rules, is_on=is_on)
        self.previews.capped, self.previews.retire = self._capped, parts.checker.retire
        self._meter, self.calls = parts.meter, parts.calls
        self.health = Health(parts.meter, clock, ticks)
        self.health.on_end, self.health.on_failure = self._healthy, self._failing
        self._clock = clock
        self._new_id = new_id
        self.maps = SourceMaps(parts.store)  # for the stack traces of every version
        self.changes: Counter[str] = Counter()  # requested deploys, by result
        # Changes in progress
        self._changing: set[str] = set()  # names
        self._tasks: set[asyncio.Task[object]] = set()
        # Held from the last check of the routes until they are taken: two workers may want the same route
        self.turn = asyncio.Lock()

    async def version(self, deployment: Deployment, reference: str, *, has_code: bool = True) -> Deployment:
        """A version of a worker (`deployment`), by id or number."""
        found = await self._store.version(deployment.id, reference, has_code=has_code)
        if found is None:
            raise Refused(
                ApiCode.NOT_FOUND,
                f"`{deployment.name}` has no version `{reference[:80]}`",
                f"GET /api/workers/{deployment.name}/versions lists them; the newest {KEPT_VERSIONS} are kept",
            )
        return found

    def reference(self, worker: Deployment, named: str) -> str:
        """The id or number of a version; `latest` names the newest version, with traffic or without."""
        return self._store.versions(worker.id, limit=1)[0].id if named == "latest" else named

    def restore(self) -> int:
        """Give every stored worker to the router, as at the end of the last run; returns their number."""
        stored, splits = self._store.load_all(), self._store.load_splits()
        check_stored(stored, self._refused)
        for deployment in stored:  # all names first: the owner of a host does not depend on the order
            self._router.put(deployment.name, deployment.version)
        for deployment in map(self._capped, stored):
            shares = self._restored_shares(deployment, splits.get(deployment.id, ()))
            try:
                self._switch(deployment, deployment.routes, shares)
            except (BadPattern, RouteTaken) as error:  # the node's control hosts have changed since the deploy
                log.error("the routes of the worker %s are not served: %s", deployment.name, error)
                self._switch(deployment, (), shares)
        for worker_id, rule in self._store.rules_in_force().items():
            self.health.follow(worker_id, rule, [each.version for each in self.in_traffic(worker_id)])
        self.previews.restore()
        for deployment in filter(self.rules.is_contested, stored):  # deployed under other rules
            log.warning("the worker %s has a host of another tenant: see `atoll routes`", deployment.name)
        for deployment in stored:  # the settings have changed since, or are those of an older Atoll
            if self._router.has_lost_host(deployment.name):
                log.warning(
                    "the worker %s does not answer on %s: the node has that host itself (`atoll config`)",
                    deployment.name,
                    self._router.own_host(deployment.name),
                )
        self._logs.forget_strangers()
        return len(stored)

    def _restored_shares(self, primary: Deployment, stored: Sequence[DeployedShare]) -> tuple[DeployedShare, ...]:
        found = sorted(stored, key=lambda share: (-share.hundredths, -share.deployment.number))
        return tuple(
            DeployedShare(primary if each.version.id == primary.version.id else self._capped(each), hundredths)
            for each, hundredths in found
        )

    async def close(self) -> None:
        """Wait for the changes in progress. Rollback rules stay in force for the next run."""
        self.health.close()
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _alone(self, name: str, change: Coroutine[None, None, T]) -> T:
        """Run a change to its end, even if the caller goes away. Refused while the same worker has another change."""
        if name in self._changing:
            change.close()
            raise Refused(
                ApiCode.CONCURRENT, f"another change of `{name}` is in progress", "check its result, then try again"
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

    async def _activate(
        self,
        draft: Deployment,
        save: Save,
        by: Caller,
        note: str = "",
        others: Sequence[DeployedShare] = (),
        rule: RollbackRule | None = None,
    ) -> Deployment:
        """Check a draft, store it, and switch to it. `others` are versions that get a part of the traffic. `save`
        stores the rollback rule, too."""
        drafts = [draft, *(share.deployment for share in others)]
        self._refuse(drafts, by)  # early: loading the version in an engine costs most
        old = self.in_traffic(draft.id)
        tried: list[Deployment] = []
        try:
            loaded, *_ = [await self._checked(each, tried) for each in drafts]
            self._check_triggers(draft.version, loaded)
            with told_to_the_deployer():
                await self._triggers.prepare(draft.version)
            await self._store.follow()
            async with self.turn:
                self._tenants.find(by.tenant)
                self._refuse(drafts, by)  # again: other workers may have changed since
                self._check_triggers(draft.version, loaded)
                if old:
                    await self._reserved.keep(self.rules.let_go(old[0], draft), by.tenant)
                checked = replace(draft, handlers=tuple(loaded.handlers), startup_ms=loaded.startup_ms)
                stored = await save(checked, Mark.of(by, self._clock(), note))
                rest = WHOLE - sum(share.hundredths for share in others)
                self._switch(stored, stored.routes, (DeployedShare(stored, rest), *others))
                self.health.follow(stored.id, rule, [each.version for each in drafts])
        except BaseException:
            self._retire(tried, but=old)
            raise
        self._retire(old, but=drafts)
        await self._trim_history(by.tenant)
        await self._refresh_previews(stored)
        await self._keep_files(stored)
        log.info("the active version of %s is %d (%s)", stored.name, stored.number, stored.version.id)
        return stored

    def _rule(
        self, worker_id: str, wanted: WantedRollback | UnsetType, shares: Sequence[PastShare], by: Caller
    ) -> RollbackRule | None:
        """The rollback rule for a deployment of these versions, with what it watches and what it returns to. The caller
        must be allowed to return to it, because the rule does that with the caller's rights."""
        if isinstance(wanted, UnsetType):
            return None
        wanted = checked_rollback(wanted)
        before = {share.deployment.version.id: share.hundredths for share in self.traffic(worker_id)}
        watched = [share for share in shares if share.hundredths > before.get(share.version_id, 0)]
        if not watched:
            hint = "give a version more traffic, or deploy without the rule"
            raise bad_body("no version gets more traffic than before, so `rollback` has nothing to watch", hint)
        target = self._store.earlier_without(worker_id, {share.version_id for share in watched})
        if target is None:
            names = ", ".join(str(share.number or "the new one") for share in watched)
            hint = "deploy without the rule"
            raise bad_body(f"`rollback` has no earlier deployment to return to without the version {names}", hint)
        primary = self._store.without_code(worker_id, target.versions[0].version_id)
        assert primary is not None
        self.rules.refuse_foreign(primary.routes, by)
        values = wanted.above, wanted.window_seconds, wanted.min_requests, wanted.watch_seconds
        ends_at = int((self._clock() + wanted.watch_seconds) * 1000)
        return RollbackRule(*values, ends_at, watched, target.versions, target.number, by.is_operator)

    def _failing(self, watch: Watch, verdict: Verdict) -> None:
        raise NotImplementedError  # deployer.py knows how to return

    def _healthy(self, watch: Watch) -> None:
        self._store.end_rule(watch.worker_id, RuleState.HEALTHY, watch.rule)
        seconds = watch.rule.watch_seconds
        log.info("the deployment of %s counts as healthy after %d s", self.live[watch.worker_id].name, seconds)

    # What other nodes did (following.py). The caller holds `turn`.

    async def stored(self, worker_id: str) -> tuple[Deployment, tuple[DeployedShare, ...]] | None:
        """A worker as it is stored now; None if it is deleted."""
        found = await self._store.load_one(worker_id)
        return None if found is None else (self._capped(found[0]), self._restored_shares(found[0], found[1]))

    def take_over(self, stored: Deployment, routes: Sequence[str], shares: tuple[DeployedShare, ...]) -> None:
        """Serve what another node has deployed."""
        old, versions = self.in_traffic(stored.id), [each.deployment for each in shares] or [stored]
        if [each.version.id for each in old] != [each.version.id for each in versions] or len(versions) > 1:
            self._switch(stored, routes, shares)
            self.health.forget(stored.id)  # the other node watches
            self._retire(old)
            log.info(
                "the active version of %s is %d (%s), by another node", stored.name, stored.number, stored.version.id
            )
        self.previews.refresh(stored)

    async def forget(self, worker_id: str) -> None:
        """Another node has deleted a worker."""
        if (deployment := self.live.get(worker_id)) is not None:
            await self._let_go(deployment, self.in_traffic(worker_id))

    async def _let_go(self, deployment: Deployment, loaded: Sequence[Deployment]) -> None:
        """A worker is deleted: nothing of it stays in memory."""
        self._router.drop(deployment.name)
        self._drop(deployment)
        self.health.forget(deployment.id)
        self.previews.drop(deployment.id)
        self._logs.drop(deployment.id)
        await self._triggers.drop(deployment.id)
        self._retire(loaded)

    async def _refresh_previews(self, worker: Deployment) -> None:
        """The versions of a worker have changed: old ones are deleted, with their aliases."""
        await self._reserved.keep(self.previews.refresh(worker), worker.version.tenant)

    def _retire(self, gone: Sequence[Deployment], but: Sequence[Deployment] = ()) -> None:
        kept = [each.version for each in but]
        for each in gone:
            if each.version not in kept:
                self._checker.retire(each.version)

    async def bring_files(self, tenant: str, places: Sequence[str]) -> None:
        """Fetch those assets that are not on this node. Raises StorageFailed."""
        if self._files is not None:
            await self._files.bring_all(tenant, places)

    async def _keep_files(self, stored: Deployment) -> None:
        """A version with assets is stored: its files are kept, and files that no version names are collected."""
        if self._files is not None and stored.version.assets is not None:
            await self._files.deployed(stored.version.tenant)

    async def _trim_history(self, tenant: str) -> None:
        most = self._tenants.quotas(tenant).script_bytes
        if most is not None:
            await self._store.trim_history(tenant, most)

    def _refuse(self, drafts: Sequence[Deployment], by: Caller) -> None:
        """Refuse drafts whose routes or size the node or the tenant does not allow at this moment."""
        draft = drafts[0]
        for each in drafts:
            refuse_unshared(each.version, self._refused)
        self.rules.refuse_foreign(draft.routes, by)
        self.rules.refuse_taken(draft)
        if draft.id not in self.live:
            self.refuse_taken_name(draft.name, by)  # another node may have created it meanwhile
            self._quotas.refuse_one_more(by.tenant, len(self.names.under(by.tenant)))
        others = self.code_bytes.get(by.tenant, 0) - sum(map(script_bytes, self.in_traffic(draft.id)))
        self._quotas.refuse_too_large(drafts, others)

    async def _checked(self, draft: Deployment, tried: list[Deployment]) -> Loaded:
        """Load a draft in an engine, and create the missing resources of its bindings. `tried` gets what is loaded."""
        loaded = await self._check(draft)
        tried.append(draft)
        refuse_uncallable(loaded.handlers)
        for grant in draft.version.grants.values():
            await self._kinds[grant.kind].prepare(draft.version.tenant, grant.resource)
        return loaded

    def _check_triggers(self, version: Version, loaded: Loaded) -> None:
        with told_to_the_deployer():
            self._triggers.check(version, loaded.handlers, loaded.classes)

    async def _check(self, draft: Deployment) -> Loaded:
        version = draft.version
        try:
            return await self._checker.check(version)
        except LoadFailed as error:
            failure = await self.maps.map_draft(error.failure, draft.source_maps, version.tenant)
            raise load_refusal(failure) from None
        except EngineError as error:
            log.warning("no engine could check %s: %s", version.worker_name, error)
            raise Refused(
                ApiCode.UNAVAILABLE, "no engine could check the worker", "nothing was changed; try again"
            ) from None

    def _switch(self, deployment: Deployment, routes: Sequence[str], shares: Sequence[DeployedShare] = ()) -> None:
        split = None
        if len(shares) > 1:
            newest_first = sorted(shares, key=lambda share: -share.deployment.number)
            split = Split([Share(share.deployment.version, share.hundredths) for share in newest_first])
        self._router.put(deployment.name, deployment.version, routes, split)
        self._put(deployment, shares, split)
        self._checker.moved(deployment.version.tenant, deployment.name)
        self._logs.open(deployment.id)
        self._triggers.put(deployment.version)

    def _settings_of(self, tenant: str) -> Settings:
        return settings_of(self._settings, self._tenants.quotas(tenant))

    def _capped(self, stored: Deployment) -> Deployment:
        """A stored version within the caps of node and tenant, which may be lower than when it was made."""
        limits = capped(stored.version.limits, self._settings_of(stored.version.tenant))
        if limits is stored.version.limits:
            return stored
        return replace(stored, version=replace(stored.version, limits=limits))
