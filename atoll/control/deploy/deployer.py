"""What can be changed of workers: deploys, versions without traffic, splits, rollbacks, secrets. switching.py has the
steps that they share, and their order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from msgspec import UNSET, UnsetType

from atoll.api.audit import Mark
from atoll.api.callers import HELD, LOCAL, Caller, Scope
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.control.checks.bindings import refuse_gone_bindings
from atoll.control.checks.body import DeployBody, checked_name
from atoll.control.checks.rollback import WantedRollback
from atoll.control.deploy.draft import Identity, changed_draft, new_draft, secrets_draft
from atoll.control.deploy.health import Verdict, Watch
from atoll.control.deploy.load_refusals import refuse_uncallable
from atoll.control.deploy.pages import with_assets
from atoll.control.deploy.shares import WantedShare, checked_shares
from atoll.control.deploy.switching import Switching
from atoll.control.store.deployment_rows import Cause, DeployedShare, whole
from atoll.control.store.rollback_rows import PastShare, RuleState
from atoll.control.store.workers import Deployment
from atoll.splits import WHOLE
from atoll.workers import Version

log = logging.getLogger("atoll.control")


class Deployer(Switching):
    async def usage(self, tenant: str) -> dict[str, int]:
        """A tenant's present use of each quota."""
        used = {"workers": len(self.names.under(tenant)), "script_bytes": self.code_bytes.get(tenant, 0)}
        for binding in self._kinds.values():
            used |= await binding.usage(tenant)
        return used

    async def holdings(self, tenant: str) -> list[str]:
        """A tenant's resources besides tokens, in words. A tenant with resources cannot be deleted."""
        kept = [f"{kind} {name}" for kind, binding in self._kinds.items() for name in await binding.holdings(tenant)]
        return [f"worker {deployment.name}" for deployment in self.all(tenant)] + kept

    async def forget_tenant(self, tenant: str) -> None:
        """Delete the data of a deleted tenant that does not count as a resource, such as a cache."""
        await self._reserved.disown(tenant)
        for binding in self._kinds.values():
            await binding.forget(tenant)

    def answering(self, host: bytes, target: bytes) -> Version | None:
        """The version that a request for this host and target reaches."""
        return self._router.find(host, target)

    def is_control(self, host: bytes) -> bool:
        return self._router.is_control(host)

    # Drafts that are run once and never stored (playground.py)

    async def try_draft(self, name: str, body: DeployBody, by: Caller) -> Deployment:
        """Load a worker that is not kept. `drop_draft` ends it."""
        identity = Identity(self._new_id("draft"), name, by.tenant, self._new_id("version"), by.name, self._clock())
        draft = new_draft(body, identity, self._settings_of(by.tenant), self._router, self._kinds)
        try:
            loaded = await self._check(draft)
            refuse_uncallable(loaded.handlers)
        except BaseException:
            self._checker.retire(draft.version)
            raise
        self._logs.open(draft.id)
        return replace(draft, handlers=tuple(loaded.handlers), startup_ms=loaded.startup_ms)

    def drop_draft(self, draft: Deployment) -> None:
        self._checker.retire(draft.version)
        self._logs.drop(draft.id)
        self._meter.forget(draft.id)

    # Changing it

    async def create(self, body: DeployBody, by: Caller = LOCAL) -> Deployment:
        name = checked_name(body.name)
        return await self._alone(name, self._create(name, body, by))

    async def update(self, id_or_name: str, body: DeployBody, by: Caller = LOCAL) -> Deployment:
        name = self._named(id_or_name, body, by)
        return await self._alone(name, self._update(name, body, by))

    def _named(self, id_or_name: str, body: DeployBody, by: Caller) -> str:
        name = self.find(id_or_name, by).name
        if body.name is not UNSET and body.name != name:
            raise Refused(
                ApiCode.BAD_NAME, f"the worker is named `{name}`", "a worker cannot be renamed: deploy a new one"
            )
        return name

    async def activate(
        self, id_or_name: str, reference: str, by: Caller = LOCAL, note: str = "", force: bool = False
    ) -> Deployment:
        """Activate a stored version of the worker. Without a reference: the version before the active one."""
        name = self.find(id_or_name, by).name
        return await self._alone(name, self._return_to(name, reference, by, note, force))

    async def upload(self, id_or_name: str, body: DeployBody, by: Caller = LOCAL, alias: str = "") -> Deployment:
        """Store a new version of a worker that gets no traffic. A given alias leads to its preview."""
        name = self._named(id_or_name, body, by)
        return await self._alone(name, self._upload(name, body, by, alias))

    async def upload_secrets(
        self,
        id_or_name: str,
        reference: str,
        changes: Mapping[str, str | None],
        by: Caller = LOCAL,
        message: str = "",
        tag: str = "",
    ) -> Deployment:
        """Store a version with other secrets, without traffic: a copy of the version named by `reference`."""
        name = self.find(id_or_name, by).name
        return await self._alone(name, self._upload_secrets(name, reference, changes, message, tag, by))

    async def drop_alias(self, id_or_name: str, alias: str, by: Caller = LOCAL) -> None:
        name = self.find(id_or_name, by).name
        await self._alone(name, self._drop_alias(name, alias, by))

    async def deploy_versions(
        self,
        id_or_name: str,
        wanted: Sequence[WantedShare],
        by: Caller = LOCAL,
        note: str = "",
        force: bool = False,
        rollback: WantedRollback | UnsetType = UNSET,
    ) -> Deployment:
        """Give the traffic of a worker to stored versions, in these shares. Returns the primary version."""
        name, shares = self.find(id_or_name, by).name, checked_shares(wanted)
        return await self._alone(name, self._deploy_versions(name, shares, by, note, force, rollback))

    async def put_secret(self, id_or_name: str, secret: str, value: str, by: Caller = LOCAL) -> Deployment:
        """Set a secret of a worker, in a new version that is active at once."""
        name = self.find(id_or_name, by).name
        return await self._alone(name, self._change_secret(name, secret, value, by))

    async def delete_secret(self, id_or_name: str, secret: str, by: Caller = LOCAL) -> Deployment:
        name = self.find(id_or_name, by).name
        return await self._alone(name, self._change_secret(name, secret, None, by))

    async def rotate_key(self, by: Caller = LOCAL) -> tuple[int, int]:
        """Seal every secret with a new root key; returns the key's number and the number of secrets.

        If the root keys come from the environment no key is made: all secrets are sealed with the newest one there.
        """
        vault = self._store.vault
        async with self.turn:  # no deploy seals with the old key meanwhile
            if not vault.is_from_environment:
                vault.add_key()
            count = await self._store.seal_anew(Mark.of(by, self._clock()))
            for kind in self._kinds.values():
                await kind.seal_anew()
            if not vault.is_from_environment:
                vault.drop_old_keys()
        return vault.key_id, count

    async def delete(self, id_or_name: str, by: Caller = LOCAL) -> None:
        name = self.find(id_or_name, by).name
        await self._alone(name, self._delete(name, by))

    async def _create(self, name: str, body: DeployBody, by: Caller) -> Deployment:
        self.refuse_taken_name(name, by)
        self._quotas.refuse_one_more(by.tenant, len(self.names.under(by.tenant)))  # before the body is checked
        if body.rollback is not UNSET:
            raise bad_body("`rollback` has no earlier deployment to return to", "create the worker without it")
        identity = Identity(self._new_id("worker"), name, by.tenant, self._new_id("version"), by.name, self._clock())
        draft = new_draft(body, identity, self._settings_of(by.tenant), self._router, self._kinds)
        return await self._activate(await with_assets(draft, body, self._store), self._store.create, by)

    async def _update(self, name: str, body: DeployBody, by: Caller) -> Deployment:
        draft = await self._next(name, body, by)
        [newest] = self._store.versions(draft.id, limit=1)
        rule = self._rule(draft.id, body.rollback, [PastShare(draft.version.id, newest.number + 1, WHOLE)], by)
        return await self._activate(draft, partial(self._store.update, rule=rule), by, rule=rule)

    async def _next(self, name: str, body: DeployBody, by: Caller) -> Deployment:
        """The draft of the next version: the active one with the fields of the body."""
        current = await self._with_code(self.find(name, by))
        identity = Identity(current.id, name, by.tenant, self._new_id("version"), by.name, self._clock())
        maps = await self._store.load_maps(current.version.id)
        draft = changed_draft(body, identity, current, maps, self._settings_of(by.tenant), self._router, self._kinds)
        return await with_assets(draft, body, self._store)

    async def _with_code(self, current: Deployment) -> Deployment:
        """A worker with the code of its active version, which may be in the store alone."""
        if current.version.is_whole:
            return current
        modules = await self._store.read_code(current.version)
        if not modules:
            raise Refused(ApiCode.CONCURRENT, f"`{current.name}` has been changed meanwhile", "try again")
        return replace(current, version=replace(current.version, modules=modules, stored_bytes=0))

    async def _drop_alias(self, name: str, alias: str, by: Caller) -> None:
        worker = self.find(name, by)
        if alias not in self._store.aliases(worker.id):
            hint = f"GET /api/workers/{name}/versions lists the versions with their aliases"
            raise Refused(ApiCode.NOT_FOUND, f"`{name}` has no alias `{alias[:80]}`", hint)
        await self._store.drop_alias(worker, alias, Mark.of(by, self._clock()))
        await self._refresh_previews(worker)

    async def _upload(self, name: str, body: DeployBody, by: Caller, alias: str) -> Deployment:
        if body.rollback is not UNSET:
            raise bad_body(
                "`rollback` belongs to a deployment, and an uploaded version gets no traffic",
                "leave it out here, and give it to the deployment",
            )
        return await self._keep(await self._next(name, body, by), by, alias)

    async def _upload_secrets(
        self, name: str, reference: str, changes: Mapping[str, str | None], message: str, tag: str, by: Caller
    ) -> Deployment:
        worker = self.find(name, by)
        base = self._capped(await self.version(worker, self.reference(worker, reference)))
        for secret, value in changes.items():
            if value is None and secret not in base.secrets:
                hint = f"GET /api/workers/{name}/versions/{base.number}/secrets lists its secrets"
                text = f"version {base.number} of `{name}` has no secret `{secret[:80]}`"
                raise Refused(ApiCode.NOT_FOUND, text, hint)
        identity = Identity(worker.id, name, by.tenant, self._new_id("version"), by.name, self._clock())
        draft = secrets_draft(base, identity, changes)
        version, maps = replace(draft.version, tag=tag), await self._store.load_maps(base.version.id)
        note = draft.message
        draft = replace(draft, version=version, message=message or note, source_maps=maps)
        return await self._keep(draft, by, note=note)

    async def _keep(self, draft: Deployment, by: Caller, alias: str = "", note: str = "") -> Deployment:
        """Check a draft and store it as a version without traffic."""
        drafts, tried = [draft, *self.in_traffic(draft.id)], list[Deployment]()
        self._refuse(drafts, by)
        try:
            loaded = await self._checked(draft, tried)
            self._check_triggers(draft.version, loaded)
            async with self.turn:
                self._tenants.find(by.tenant)
                self._refuse(drafts, by)
                alias = self.previews.checked_alias(drafts[1], alias) if alias else ""
                checked = replace(draft, handlers=tuple(loaded.handlers), startup_ms=loaded.startup_ms)
                stored = await self._store.upload(checked, Mark.of(by, self._clock(), note), alias)
                lost = self.previews.refresh(drafts[1])
        finally:
            self._retire(tried)
        await self._reserved.keep(lost, by.tenant)
        await self._trim_history(by.tenant)
        await self._keep_files(stored)
        log.info("version %d of %s is stored (%s)", stored.number, stored.name, stored.version.id)
        return stored

    async def _deploy_versions(
        self,
        name: str,
        wanted: Sequence[tuple[str, int]],
        by: Caller,
        note: str,
        force: bool,
        rollback: WantedRollback | UnsetType,
    ) -> Deployment:
        current = self.find(name, by)
        shares: list[DeployedShare] = []
        for reference, hundredths in wanted:
            found = await self._deployable(current, reference)
            if any(share.deployment.version.id == found.version.id for share in shares):
                raise bad_body(
                    f"the version {found.number} ({found.version.id}) is named twice", "name each version once"
                )
            if found.number < current.number and not force:
                refuse_changed_secrets(found, current)
            if not force:
                await refuse_gone_bindings(found.version, self._kinds)
            shares.append(DeployedShare(found, hundredths))
        past = [PastShare(each.version.id, each.number, hundredths) for each, hundredths in shares]
        cause = Cause("versions", rule=self._rule(current.id, rollback, past, by))
        return await self._switch_traffic(shares, cause, by, note)

    async def _switch_traffic(self, shares: Sequence[DeployedShare], cause: Cause, by: Caller, note: str) -> Deployment:
        """Give the traffic of a worker to stored versions."""
        primary, *others = sorted(shares, key=lambda share: (-share.hundredths, -share.deployment.number))
        draft = replace(primary.deployment, updated_at=int(self._clock() * 1000))
        save = partial(self._store.activate, cause=cause, others=others)
        return await self._activate(draft, save, by, note, others, cause.rule)

    async def _change_secret(self, name: str, secret: str, value: str | None, by: Caller) -> Deployment:
        current = await self._with_code(self.find(name, by))
        self._refuse_split(current, "setting or deleting a secret deploys a new version")
        if value is None and secret not in current.secrets:
            hint = f"GET /api/workers/{name}/secrets lists the secrets"
            raise Refused(ApiCode.NOT_FOUND, f"`{name}` has no secret `{secret[:80]}`", hint)
        identity = Identity(current.id, name, by.tenant, self._new_id("version"), by.name, self._clock())
        draft = secrets_draft(current, identity, {secret: value})
        maps = await self._store.load_maps(current.version.id)
        save = partial(self._store.update, action=f"secret.{'delete' if value is None else 'put'}")
        return await self._activate(replace(draft, source_maps=maps), save, by, secret)

    async def _return_to(self, name: str, reference: str, by: Caller, note: str, force: bool) -> Deployment:
        current = self.find(name, by)
        wanted = await self._deployable(current, reference or self._before(current))
        if wanted.version.id == current.version.id and current.id not in self.shares:
            return current
        if not force:
            refuse_changed_secrets(wanted, current)
            await refuse_gone_bindings(wanted.version, self._kinds)
        return await self._switch_traffic(whole(wanted), Cause("rollback"), by, note)

    # Rollback rules: health.py watches, and calls `_failing`

    def _failing(self, watch: Watch, verdict: Verdict) -> None:
        task = asyncio.ensure_future(self._roll_back(watch, verdict))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _roll_back(self, watch: Watch, verdict: Verdict) -> None:
        """Return to the deployment that a rule names. If that is impossible at this moment, the watch tries again."""
        name = self.live[watch.worker_id].name
        try:
            await self._alone(name, self._return_by_rule(watch, verdict))
        except Refused as refusal:
            if refusal.reason in (ApiCode.CONCURRENT, ApiCode.UNAVAILABLE):
                log.warning("%s is not rolled back yet: %s (%s)", name, refusal, verdict)
            elif self.health.watch_of(watch.worker_id) is watch:
                self.health.forget(watch.worker_id)
                self._store.end_rule(watch.worker_id, RuleState.FAILED, watch.rule)
                log.error("%s cannot be rolled back: %s (%s)", name, refusal, verdict)
        except Exception:
            log.exception("%s could not be rolled back (%s)", name, verdict)

    async def _return_by_rule(self, watch: Watch, verdict: Verdict) -> None:
        current = self.live.get(watch.worker_id)
        if current is None or self.health.watch_of(watch.worker_id) is not watch:
            return  # another deployment came first
        target = [(await self._deployable(current, share.version_id), share) for share in watch.rule.target]
        by = Caller("rollback rule", current.version.tenant, HELD[Scope.DEPLOY], watch.rule.by_operator)
        cause = Cause("rollback", failed=verdict.version.id)
        note = f"rolled back automatically: {verdict}"
        shares = [DeployedShare(found, share.hundredths) for found, share in target]
        found = await self._switch_traffic(shares, cause, by, note)
        self._meter.count_rollback(verdict.version)
        log.warning("%s is back on version %d: %s", found.name, found.number, note)

    async def _deployable(self, current: Deployment, reference: str) -> Deployment:
        """A stored version of a worker. One that has traffic is the object that is loaded already."""
        found = self._capped(await self.version(current, reference))
        return next((each for each in self.in_traffic(current.id) if each.version.id == found.version.id), found)

    def _before(self, current: Deployment) -> str:
        """The default of a rollback: the newest version older than the active one that has had all traffic. While
        traffic is split: the version that last had all of it."""
        is_split = current.id in self.shares
        found = self._store.last_whole(current.id) if is_split else self._store.before(current.id, current.number)
        if not found:
            raise Refused(
                ApiCode.NOT_FOUND, f"`{current.name}` has no version before the active one", "deploy a new version"
            )
        return found

    def _refuse_split(self, current: Deployment, why: str) -> None:
        """Refuse a change that would end a gradual deployment by surprise."""
        if current.id in self.shares:
            raise Refused(
                ApiCode.TRAFFIC_SPLIT,
                f"the traffic of `{current.name}` is split between versions, and {why}",
                "give all traffic to one version first: atoll versions deploy VERSION;"
                " or make a version without traffic: atoll versions secret",
            )

    async def _delete(self, name: str, by: Caller) -> None:
        deployment, loaded = self.find(name, by), self.in_traffic(self.find(name, by).id)
        hosts = [*self.rules.let_go(deployment), *self.previews.claims(deployment.id)]
        await self._reserved.keep(hosts, by.tenant)
        async with self.turn:  # it must not be read again in between
            await self._store.delete(deployment, Mark.of(by, self._clock()))
            await self._let_go(deployment, loaded)


def refuse_changed_secrets(wanted: Deployment, current: Deployment) -> None:
    """Refuse to return to a version with other secrets than the active one."""
    if wanted.secrets != current.secrets:
        changed = sorted(set(wanted.secrets.items()) ^ set(current.secrets.items()))
        raise Refused(
            ApiCode.SECRETS_CHANGED,
            f"secrets have changed since: {', '.join(dict.fromkeys(secret for secret, _ in changed))}",
            "with force the version becomes active with the secrets it had then",
        )
