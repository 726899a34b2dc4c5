"""What several nodes on one PostgreSQL cannot have yet: it is on the disk of one node. It is refused, so that no node
answers from an empty store, and no object is alive twice."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from atoll.api.refusals import ApiCode, Refused
from atoll.api.routes import Route
from atoll.control.store.version_rows import Deployment
from atoll.errors import StartError
from atoll.manifests.every import on_one_node, trigger_kinds
from atoll.workers import Version

log = logging.getLogger("atoll")

HINT = "start the only node with --only-node on to have them; docs/guides/cluster.md says what several nodes share"


def unshared(*, is_shared: bool) -> Mapping[str, str]:
    """The kinds that this node refuses, and what each is about. `is_shared`: other nodes may run."""
    found = on_one_node() if is_shared else {}
    if found:
        log.warning("refused here, since nodes cannot share it yet: %s", ", ".join(sorted(found.values())))
    return found


def refusal(what: str) -> Refused:
    return Refused(ApiCode.ONE_NODE, f"several nodes on PostgreSQL cannot share {what} yet", HINT)


def uses_of(version: Version, refused: Mapping[str, str]) -> list[str]:
    """What a version uses of the refused kinds, in words."""
    kinds = [grant.kind for grant in version.grants.values()]
    kinds += [trigger_kinds()[field] for field, entries in version.triggers.items() if entries]
    return sorted({refused[kind] for kind in kinds if kind in refused})


def refuse_unshared(version: Version, refused: Mapping[str, str]) -> None:
    for what in uses_of(version, refused):
        raise refusal(what)


def check_stored(stored: Iterable[Deployment], refused: Mapping[str, str]) -> None:
    """StartError if deployed workers need a node that is the only one."""
    for deployment in stored:
        for what in uses_of(deployment.version, refused):
            raise StartError(
                f"the worker `{deployment.name}` uses {what}, which several nodes cannot share yet",
                "start this node with --only-node on, or delete the worker there first",
                "only_node",
            )


def guarded(kind: str, routes: Iterable[Route], refused: Mapping[str, str]) -> list[Route]:
    """The endpoints of a binding; those of a refused kind only say so."""
    if kind not in refused:
        return list(routes)

    async def refuse(request: Request) -> Response:
        raise refusal(refused[kind])

    return [replace(route, endpoint=refuse) for route in routes]
