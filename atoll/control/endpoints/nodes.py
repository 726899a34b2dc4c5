"""The nodes of a cluster, for operators."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.refusals import ApiCode, Refused
from atoll.api.routes import Route, caller_of, json_answer


class FoundNode(Protocol):
    """A row of cluster/nodes.py."""

    name: str
    address: str
    release: str
    alone: bool
    state: str
    seen: int
    started: datetime
    is_live: bool


class NodeList(Protocol):
    name: str
    head: int

    async def all(self) -> Sequence[FoundNode]: ...
    async def want(self, name: str, wanted: str) -> bool: ...


class Nodes(Protocol):
    """The cluster that this node belongs to (cluster/cluster.py)."""

    @property
    def members(self) -> NodeList: ...


class NodeAnswer(msgspec.Struct):
    name: str
    address: str  # at which an edge reaches it
    state: str  # starting, serving, draining; lost: its lease has ended
    change: int  # number of the newest change that it has
    behind: int  # changes that it has not taken over yet
    release: str
    started_at: str
    only_node: bool
    is_this: bool  # the node that answers


class NodesAnswer(msgspec.Struct):
    nodes: list[NodeAnswer]


class NodesApi:
    def __init__(self, cluster: Nodes | None, audit: AuditLog) -> None:
        self._cluster = cluster
        self._audit = audit

    def routes(self) -> list[Route]:
        drain = "Take a node out of service: it says so in /readyz, and starts no crons and batches"
        return [
            Route(
                "GET", "/api/nodes", self.list, Scope.READ, "The nodes of the cluster", gives=NodesAnswer, is_node=True
            ),
            Route("POST", "/api/nodes/{name}/drain", self.drain, Scope.ADMIN, drain, gives=NodesAnswer, is_node=True),
        ]

    async def list(self, request: Request) -> Response:
        return json_answer(await self._answer())

    async def drain(self, request: Request) -> Response:
        name = request.path_params["name"]
        members = self._members()
        await self._audit.note(caller_of(request), "node.drain", name)
        if not await members.want(name, "drain"):
            text = f"there is no node `{name[:80]}` that runs"
            raise Refused(ApiCode.NOT_FOUND, text, "`atoll nodes` lists the nodes")
        return json_answer(await self._answer())

    async def _answer(self) -> NodesAnswer:
        members = self._members()
        found = await members.all()
        head = max((node.seen for node in found), default=0)
        return NodesAnswer(
            [
                NodeAnswer(
                    node.name,
                    node.address,
                    node.state if node.is_live else "lost",
                    node.seen,
                    max(max(head, members.head) - node.seen, 0),
                    node.release,
                    node.started.isoformat(timespec="seconds"),
                    node.alone,
                    node.name == members.name,
                )
                for node in found
            ]
        )

    def _members(self) -> NodeList:
        if self._cluster is None:
            text = "this node is by itself: it shares no PostgreSQL with others"
            raise Refused(ApiCode.NOT_FOUND, text, "docs/guides/cluster.md says how nodes are joined")
        return self._cluster.members
