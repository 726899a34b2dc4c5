"""Endpoints of deployments: which versions of a worker get traffic, now and before."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.bodies import read_json
from atoll.api.callers import Scope
from atoll.api.paging import page_of, page_query
from atoll.api.routes import Route, caller_of, json_answer
from atoll.clock import iso_time
from atoll.control.checks.body import parse_fields
from atoll.control.checks.rollback import WantedRollback
from atoll.control.checks.words import MAX_MESSAGE, checked_words
from atoll.control.deploy.deployer import Deployer
from atoll.control.deploy.shares import WantedShare
from atoll.control.store.deployment_rows import DeployedShare, DeploymentEntry
from atoll.control.store.rollback_rows import RollbackRule, RuleState
from atoll.control.store.workers import WorkerStore

NEWEST = 2**62  # above every number


class ShareAnswer(msgspec.Struct):
    """A version in a deployment."""

    id: str
    number: int
    percentage: float


class RollbackAnswer(msgspec.Struct):
    """The rollback rule of a deployment."""

    above: float
    window_seconds: int
    min_requests: int
    watch_seconds: int
    ends_at: str
    state: RuleState
    watches: list[int]  # numbers of versions
    returns_to: int  # number of a deployment


class DeploymentAnswer(msgspec.Struct):
    id: str
    number: int
    active: bool  # the current one
    created_at: str
    author: str
    message: str
    source: str  # deploy, secret, rollback, versions
    versions: list[ShareAnswer]
    rollback: RollbackAnswer | None


class DeploymentsAnswer(msgspec.Struct, omit_defaults=True):
    deployments: list[DeploymentAnswer]
    cursor: str = ""


class DeploymentBody(msgspec.Struct, forbid_unknown_fields=True):
    """Which versions get traffic, in percent. The percentages sum to 100."""

    versions: list[WantedShare]
    message: str = ""
    force: bool = False  # even if secrets have changed since, or a resource of a binding is gone
    rollback: WantedRollback | UnsetType = UNSET


class DeploymentsApi:
    def __init__(self, deployer: Deployer, store: WorkerStore) -> None:
        self._deployer = deployer
        self._store = store

    def routes(self) -> list[Route]:
        path = "/api/workers/{worker}/deployments"
        return [
            Route(
                "GET",
                path,
                self.list,
                Scope.READ,
                "Deployments, newest first: the first is the current one",
                gives=DeploymentsAnswer,
                query=page_query(),
            ),
            Route(
                "POST",
                path,
                self.create,
                Scope.DEPLOY,
                "Give the traffic to one or more versions",
                takes=DeploymentBody,
                gives=DeploymentAnswer,
                status=201,
            ),
        ]

    async def list(self, request: Request) -> Response:
        worker = self._deployer.find(request.path_params["worker"], caller_of(request))
        before, limit = page_of(request)
        found = self._store.deployments(worker.id, before or NEWEST, limit + 1)
        [newest, *_] = self._store.deployments(worker.id)
        listed = [_shown(each, is_active=each.number == newest.number) for each in found[:limit]]
        return json_answer(DeploymentsAnswer(listed, str(listed[-1].number) if len(found) > limit else ""))

    async def create(self, request: Request) -> Response:
        body = parse_fields(await read_json(request), DeploymentBody)
        checked_words("message", body.message, MAX_MESSAGE)
        found = await self._deployer.deploy_versions(
            request.path_params["worker"], body.versions, caller_of(request), body.message, body.force, body.rollback
        )
        [newest, *_] = self._store.deployments(found.id)
        return json_answer(_shown(newest, is_active=True), status=201)


def _shown(entry: DeploymentEntry, *, is_active: bool) -> DeploymentAnswer:
    return DeploymentAnswer(
        id=entry.id,
        number=entry.number,
        active=is_active,
        created_at=iso_time(entry.created_at),
        author=entry.author,
        message=entry.message,
        source=entry.source,
        versions=[ShareAnswer(share.version_id, share.number, share.hundredths / 100) for share in entry.versions],
        rollback=_shown_rule(entry.rule) if entry.rule is not None else None,
    )


def _shown_rule(rule: RollbackRule) -> RollbackAnswer:
    return RollbackAnswer(
        above=rule.above,
        window_seconds=rule.window_seconds,
        min_requests=rule.min_requests,
        watch_seconds=rule.watch_seconds,
        ends_at=iso_time(rule.ends_at),
        state=rule.state,
        watches=[share.number for share in rule.watched],
        returns_to=rule.target_number,
    )


def shares_shown(shares: Sequence[DeployedShare]) -> list[ShareAnswer]:
    """The versions with traffic, as answers about workers show them."""
    found = [(share.deployment, share.hundredths / 100) for share in shares]
    return [ShareAnswer(each.version.id, each.number, percentage) for each, percentage in found]
