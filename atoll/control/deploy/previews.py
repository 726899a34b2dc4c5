"""Preview URLs: hosts that lead to a version without traffic.

    <8 digits of the version's id>-<worker>.<base domain>    every version
    <alias>-<worker>.<base domain>                           the version that was last uploaded with this alias

A preview never takes a host from anyone. Workers, routes and custom domains win, so a worker may even be named like a
preview. Between tenants a host has one owner (docs/decisions/0034): an alias is a claim of its tenant like the host of
a worker, and is reserved after its end. Hosts of the first kind are kept free for the tenant of the worker
(route_rules.py), and an alias cannot look like one.

The version and the active version of the worker must both allow previews. Versions found here have no code; the pool
reads it when they are loaded (engine/loaded/late_code.py).
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from atoll.api.refusals import ApiCode, Refused
from atoll.claims import Claim
from atoll.control.deploy.deployed import Deployed
from atoll.control.deploy.route_rules import PREVIEW, RouteRules
from atoll.control.store.version_rows import Deployment
from atoll.control.store.workers import WorkerStore
from atoll.errors import StorageFailed
from atoll.router import Router
from atoll.workers import Version, host_label

log = logging.getLogger("atoll.control")

ALIAS = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
DIGITS = 8
KEPT = 64  # versions in memory, without their code; each may have some 600 KB of variables
MAX_ALIASES = 100  # of one worker
MAX_LABEL = 63


class AliasTarget(NamedTuple):
    worker_id: str
    version_id: str
    tenant: str


class Previews:
    def __init__(
        self, deployed: Deployed, store: WorkerStore, router: Router, rules: RouteRules, *, is_on: bool
    ) -> None:
        self._deployed = deployed
        self._store = store
        self._router = router
        self._rules = rules
        self.is_on = is_on
        self._aliases: dict[str, AliasTarget] = {}  # by label
        self._found: OrderedDict[str, Version] = OrderedDict()  # by label, the last used last
        self.capped: Callable[[Deployment], Deployment] = lambda found: found
        self.retire: Callable[[Version], None] = lambda version: None
        router.preview = self.find

    # The way of a request

    def find(self, label: str) -> Version | None:
        """The version that a host directly below the base domain previews."""
        found = self._found.get(label)
        if found is not None:
            self._found.move_to_end(label)
            return found
        target = self._target(label) if self.is_on else None
        if target is None:
            return None
        try:
            found = self._version(*target)
        except (StorageFailed, Refused) as error:
            log.warning("the preview %s cannot be served: %s", label, error)
            return None
        if found is not None and not found.has_code:
            self._found[label] = found
            if len(self._found) > KEPT:
                self._found.popitem(last=False)  # its isolate ends when it is idle
        return found

    def _target(self, label: str) -> tuple[Deployment, str] | None:
        """The worker and the version's id, or what its id begins with."""
        if PREVIEW.match(label):
            worker = self._deployed.named(self._router.labels.get(label[DIGITS + 1 :], ""))
            return (worker, f"version_{label[:DIGITS]}") if worker is not None else None
        target = self._aliases.get(label)
        alias_of = self._deployed.live.get(target.worker_id) if target is not None else None
        return (alias_of, target.version_id) if target is not None and alias_of is not None else None

    def _version(self, worker: Deployment, begin: str) -> Version | None:
        version_id = self._store.version_id(worker.id, begin)
        for each in self._deployed.in_traffic(worker.id):
            if each.version.id == version_id:
                return each.version if each.version.preview_urls and worker.version.preview_urls else None
        stored = self._store.without_code(worker.id, version_id) if version_id and worker.version.preview_urls else None
        if stored is None or not stored.version.preview_urls:
            return None
        return replace(self.capped(stored).version, has_code=False)

    # What is shown

    def host(self, worker: Deployment, version_id: str, preview_urls: bool) -> str:
        """The host of a version's preview; "" if it has none."""
        digits = version_id.removeprefix("version_")[:DIGITS]
        label = f"{digits}-{host_label(worker.name)}"
        is_open = self.is_on and preview_urls and worker.version.preview_urls and PREVIEW.fullmatch(label)
        return self._host(label) if is_open and len(label) <= MAX_LABEL else ""

    def alias_hosts(self, worker: Deployment) -> dict[str, list[str]]:
        """The hosts of a worker's aliases, by the id of the version they lead to."""
        found: dict[str, list[str]] = {}
        for alias, version_id in self._store.aliases(worker.id).items() if self.is_on else ():
            found.setdefault(version_id, []).append(self._host(self._label(worker.name, alias)))
        return found

    def _host(self, label: str) -> str:
        return f"{label}.{self._router.base}"

    def _label(self, worker_name: str, alias: str) -> str:
        return f"{alias}-{host_label(worker_name)}"

    # Changes

    def checked_alias(self, worker: Deployment, alias: str) -> str:
        """Refuse an alias whose host is invalid, or someone else's."""
        label = self._label(worker.name, alias)
        wrong = ApiCode.BAD_NAME
        if not ALIAS.fullmatch(alias) or "--" in alias:
            hint = "use lower-case letters, digits and single dashes, beginning with a letter"
            raise Refused(wrong, f"`{alias[:80]}` is not a valid alias", hint)
        if len(label) > MAX_LABEL:
            hint = f"the alias and the name of the worker may have {MAX_LABEL - 1} characters together"
            raise Refused(wrong, f"the alias `{alias[:80]}` is too long", hint)
        if PREVIEW.match(label):
            hint = f"do not begin it with {DIGITS} hexadecimal digits"
            raise Refused(wrong, f"the alias `{alias}` looks like the id of a version", hint)
        known = self._store.aliases(worker.id)
        if alias not in known and len(known) >= MAX_ALIASES:
            raise Refused(
                ApiCode.QUOTA, f"the worker has {MAX_ALIASES} aliases", "delete one: atoll versions unalias ALIAS"
            )
        if label in self._aliases and self._aliases[label].worker_id != worker.id:
            raise Refused(
                ApiCode.ROUTE_TAKEN, f"{self._host(label)} is an alias of another worker", "choose another alias"
            )
        self._rules.refuse_taken_host(label, worker.version.tenant)
        return alias

    def restore(self) -> None:
        """Claim the hosts of all stored aliases. At the start, after all workers."""
        for worker_id, alias, version_id in self._store.all_aliases():
            if worker_id in self._deployed.live:
                self._put(self._deployed.live[worker_id], alias, version_id)

    def refresh(self, worker: Deployment) -> list[Claim]:
        """Versions or aliases of a worker have changed. Returns the claims that ended, to be reserved."""
        self.forget(worker.id)
        stored = self._store.aliases(worker.id)
        lost = self._drop(worker.id, {self._label(worker.name, alias) for alias in stored})
        for alias, version_id in stored.items():
            self._put(worker, alias, version_id)
        return lost

    def claims(self, worker_id: str) -> list[Claim]:
        """The claims of a worker's aliases."""
        return [("*", self._host(label)) for label, target in self._aliases.items() if target.worker_id == worker_id]

    def drop(self, worker_id: str) -> None:
        """The worker is deleted."""
        self.forget(worker_id)
        self._drop(worker_id, set())

    def forget(self, worker_id: str) -> None:
        """Look up the versions of a worker again."""
        for label in [label for label, version in self._found.items() if version.worker_id == worker_id]:
            self.retire(self._found.pop(label))
        self._router.forget()

    def _put(self, worker: Deployment, alias: str, version_id: str) -> None:
        label = self._label(worker.name, alias)
        if label not in self._aliases:
            self._router.claims.put(("*", self._host(label)), worker.version.tenant)
        self._aliases[label] = AliasTarget(worker.id, version_id, worker.version.tenant)

    def _drop(self, worker_id: str, kept: set[str]) -> list[Claim]:
        mine = [label for label, target in self._aliases.items() if target.worker_id == worker_id]
        lost = [label for label in mine if label not in kept]
        for label in lost:
            self._router.claims.drop(("*", self._host(label)), self._aliases.pop(label).tenant)
        return [("*", self._host(label)) for label in lost]
