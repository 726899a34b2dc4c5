"""All of /client/v4: the routes of this package and of the bindings that have a part in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from starlette import routing

from atoll.api.cloudflare import V4, CloudflareTools
from atoll.api.routes import Route
from atoll.api.work import Work
from atoll.bindings.base import Binding
from atoll.config import Settings
from atoll.control.access.access import Access
from atoll.control.cloudflare.account_hosts import HostsOfAccount
from atoll.control.cloudflare.accounts import AccountsApi
from atoll.control.cloudflare.beta import BetaWorkers
from atoll.control.cloudflare.beta_versions import BetaVersions
from atoll.control.cloudflare.callers import Accounts, CloudflareBoundary
from atoll.control.cloudflare.changes import Changes
from atoll.control.cloudflare.drafts import BindingTypes
from atoll.control.cloudflare.hosts import HostsOfScripts
from atoll.control.cloudflare.labels import Labels
from atoll.control.cloudflare.scripts import ScriptsApi
from atoll.control.cloudflare.secrets import SecretsOfScripts
from atoll.control.cloudflare.tails import TailsOfScripts
from atoll.control.cloudflare.versions import VersionsOfScripts
from atoll.control.deploy.deployer import Deployer
from atoll.control.deploy.sharing import guarded
from atoll.control.deploy.upload import max_body
from atoll.control.endpoints.logs import LogsApi
from atoll.control.store.workers import WorkerStore
from atoll.manifests.every import cloudflare_parts
from atoll.observe.store import LogStore
from atoll.public_address import PublicAddress


class CloudflareParts(Struct, frozen=True):
    settings: Settings
    deployer: Deployer
    store: WorkerStore
    access: Access
    work: Work
    is_control: Callable[[bytes], bool]
    address: Callable[[], PublicAddress]
    kinds: Mapping[str, Binding]
    logs: LogStore
    live: LogsApi
    refused: Mapping[str, str] = {}


class CloudflareApi:
    def __init__(self, parts: CloudflareParts) -> None:
        deployer, types = parts.deployer, BindingTypes(parts.kinds)
        accounts = Accounts(parts.access)
        changes = Changes(deployer)
        tools = CloudflareTools(parts.access.audit, changes.make, deployer.find, deployer.all)
        labels = Labels(parts.store)
        versions = VersionsOfScripts(deployer, parts.store, types, max_body(parts.settings))
        self._tails = TailsOfScripts(deployer, parts.live, parts.logs, parts.settings)
        self.routes: list[Route] = [
            *AccountsApi(accounts).routes(),
            *ScriptsApi(deployer, changes, types, max_body(parts.settings), parts.address).routes(),
            *versions.routes(),
            *BetaWorkers(deployer, changes, labels, parts.address).routes(),
            *BetaVersions(deployer, parts.store, types, labels, versions, max_body(parts.settings)).routes(),
            *SecretsOfScripts(deployer, parts.store).routes(),
            *HostsOfScripts(deployer, changes).routes(),
            *HostsOfAccount(deployer, changes, labels).routes(),
            *self._tails.routes(),
        ]
        for kind, part in cloudflare_parts().items():
            if part.routes is not None and kind in parts.kinds:
                self.routes += guarded(kind, part.routes(parts.kinds[kind], tools), parts.refused)
        self._boundary = CloudflareBoundary(parts.is_control, parts.access, accounts, parts.work)

    def mount(self) -> list[routing.BaseRoute]:
        tails = self._boundary.mount_socket(f"{V4}/tails/{{secret}}", self._tails.listen)
        return [*self._boundary.mount(self.routes), tails]
