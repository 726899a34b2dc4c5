"""The deployed workers, each with its active version, by id, name and tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from atoll.api.callers import Caller
from atoll.api.refusals import ApiCode, Refused
from atoll.control.deploy.quotas import script_bytes
from atoll.control.index import Index, sorted_after
from atoll.control.store.deployment_rows import DeployedShare, whole
from atoll.control.store.version_rows import Deployment
from atoll.splits import Split
from atoll.workers import Version


class Deployed:
    """The deployments that the router points to. Only the deployer changes them.

    A worker has one active version. While its traffic is split, that is the primary one, with the largest share.
    """

    def __init__(self) -> None:
        self.live: dict[str, Deployment] = {}  # by worker id
        self._ids: dict[str, str] = {}  # name -> worker id
        # Of workers with traffic in several versions, by worker id: the shares, and the choice for a call
        self.shares: dict[str, tuple[DeployedShare, ...]] = {}
        self.splits: dict[str, Split] = {}
        self.names = Index()
        self.code_bytes: Counter[str] = Counter()  # of all versions with traffic, by tenant

    def _put(self, deployment: Deployment, shares: Sequence[DeployedShare] = (), split: Split | None = None) -> None:
        self._weigh(deployment, -1)
        self.live[deployment.id] = deployment
        self.shares.pop(deployment.id, None)
        self.splits.pop(deployment.id, None)
        if split is not None:
            self.shares[deployment.id], self.splits[deployment.id] = tuple(shares), split
        self._ids[deployment.name] = deployment.id
        self.names.add(deployment.version.tenant, deployment.name)
        self._weigh(deployment, 1)

    def _drop(self, deployment: Deployment) -> None:
        self._weigh(deployment, -1)
        del self.live[deployment.id], self._ids[deployment.name]
        self.shares.pop(deployment.id, None)
        self.splits.pop(deployment.id, None)
        self.names.drop(deployment.version.tenant, deployment.name)

    def _weigh(self, deployment: Deployment, sign: int) -> None:
        tenant = deployment.version.tenant
        self.code_bytes[tenant] += sign * sum(map(script_bytes, self.in_traffic(deployment.id)))
        if not self.code_bytes[tenant]:
            del self.code_bytes[tenant]

    def all(self, tenant: str | None = None) -> list[Deployment]:
        """All workers, or those of a tenant, by name."""
        return [self.live[self._ids[name]] for name in self.names.under(tenant)]

    def after(self, tenant: str | None, name: str) -> Iterator[Deployment]:
        """The same one by one, starting after a name. Each is looked up when its turn comes."""
        return (self.live[self._ids[each]] for each in sorted_after(self.names.under(tenant), name))

    def named(self, name: str) -> Deployment | None:
        """A worker by its name, of any tenant."""
        return self.live.get(self._ids.get(name, ""))

    def id_of(self, name: str) -> str:
        """The id of a worker; "" if there is none of that name."""
        return self._ids.get(name, "")

    def find(self, id_or_name: str, by: Caller) -> Deployment:
        """A worker of the caller's tenant. Workers of other tenants are not found."""
        deployment = self.live.get(self._ids.get(id_or_name, id_or_name))
        if deployment is None or deployment.version.tenant != by.tenant:
            raise Refused(
                ApiCode.NO_WORKER,
                f"there is no worker `{id_or_name[:80]}`",
                "GET /api/workers lists the workers; POST /api/workers creates one",
            )
        return deployment

    def refuse_taken_name(self, name: str, by: Caller) -> None:
        """Refuse to create a worker whose name a worker has."""
        if name in self._ids:
            is_mine = self.live[self._ids[name]].version.tenant == by.tenant
            hint = f"to update it: PUT /api/workers/{name}" if is_mine else "names are unique on a node: choose another"
            raise Refused(ApiCode.NAME_TAKEN, f"a worker named `{name}` already exists", hint)

    def traffic(self, worker_id: str) -> tuple[DeployedShare, ...]:
        """The versions of a worker that have traffic, with their shares."""
        shares = self.shares.get(worker_id)
        return shares if shares is not None else whole(self.live[worker_id])

    def in_traffic(self, worker_id: str) -> list[Deployment]:
        """The versions of a worker that have traffic; none if there is no such worker."""
        return [share.deployment for share in self.traffic(worker_id)] if worker_id in self.live else []

    def active(self, worker_id: str) -> Version | None:
        """The active version of a worker: the primary one, if several have traffic."""
        deployment = self.live.get(worker_id)
        return deployment.version if deployment is not None else None

    def name_of(self, worker_id: str) -> str:
        """The name of a worker; "" once it is deleted."""
        deployment = self.live.get(worker_id)
        return deployment.name if deployment is not None else ""

    def is_split(self, tenant: str, name: str) -> bool:
        """Whether several versions of a worker have traffic."""
        return self._ids.get(name, "") in self.splits

    def active_named(self, tenant: str, name: str) -> Version | None:
        """The same by name, for a worker of that tenant. Used by every service call."""
        worker_id = self._ids.get(name, "")
        version = self.active(worker_id)
        if self.splits and worker_id in self.splits:
            version = self.splits[worker_id].by_chance()
        return version if version is not None and version.tenant == tenant else None
