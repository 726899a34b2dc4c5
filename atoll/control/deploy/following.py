"""Takes over what other nodes have deployed, split, rolled back or deleted."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from atoll.control.deploy.deployer import Deployer
from atoll.control.store.deployment_rows import DeployedShare
from atoll.control.store.version_rows import Deployment
from atoll.db.touched import Touched
from atoll.router import BadPattern, RouteTaken

log = logging.getLogger("atoll.control")

# Tables whose rows belong to a worker, by the column that has its id: the first of the key, or the second column
BY_KEY: Final = ("workers", "traffic", "preview_aliases")
BY_SECOND: Final = ("versions", "deployments")


def workers_in(touched: Touched) -> set[str]:
    """The ids of the workers that a change is about."""
    found = {key for table, key in touched.keys if table in BY_KEY}
    found |= {value for table, value in touched.seconds if table in BY_SECOND}
    return {worker_id for worker_id in found if isinstance(worker_id, str)}


async def follow(deployer: Deployer, touched: Touched) -> None:
    """Bring the node to what the store says of these workers."""
    wanted = workers_in(touched)
    if wanted:
        async with deployer.turn:
            await _follow(deployer, sorted(wanted))


async def _follow(deployer: Deployer, wanted: Iterable[str]) -> None:
    late: list[tuple[Deployment, tuple[DeployedShare, ...]]] = []
    for worker_id in wanted:
        found = await deployer.stored(worker_id)
        if found is None:
            await deployer.forget(worker_id)
        else:
            late.append(found)
    while late:  # a route that one worker has given up may be another's by now: those wait for a second round
        waiting = [found for found in late if not _switched(deployer, *found)]
        if len(waiting) == len(late):
            for deployment, shares in waiting:
                log.error("the routes of the worker %s are not served", deployment.name)
                deployer.take_over(deployment, (), shares)
            return
        late = waiting


def _switched(deployer: Deployer, deployment: Deployment, shares: tuple[DeployedShare, ...]) -> bool:
    try:
        deployer.take_over(deployment, deployment.routes, shares)
    except (BadPattern, RouteTaken):
        return False
    return True
