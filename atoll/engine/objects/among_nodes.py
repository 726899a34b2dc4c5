"""The objects of a node that shares them with others: which of them live elsewhere, and how long those here may answer.

A node answers for its objects as long as its lease holds. After that another node may have them. So the lease is looked
at wherever something of an object leaves an engine (output_gate.py), and when it has ended, all objects are reset.

A call to an object that another node has is sent there (far/). The node that has it is remembered as long as it says
so; otherwise the database is asked, which is the only one that knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from atoll.bindings.services import ObjectTarget
from atoll.cluster.link.connection import LinkConnection
from atoll.cluster.link.node_link import NodeLink
from atoll.config import Settings
from atoll.engine.calls.call import Call, CallListener
from atoll.engine.objects import failures
from atoll.engine.objects.far import frames
from atoll.engine.objects.far.far_calls import FarCalls
from atoll.engine.objects.far.served_calls import ServedCall, ServedCalls
from atoll.engine.objects.hibernation import Hibernation
from atoll.engine.objects.live_object import CLOSED, OPENING, LiveObject
from atoll.engine.objects.object_calls import CallHome, addressed, adopt
from atoll.errors import Failure, ObjectFailure, StartError
from atoll.objects.store import Elsewhere, ObjectKey
from atoll.wire.generated import ErrorCode, Event
from atoll.workers import Version

if TYPE_CHECKING:
    from atoll.cluster.cluster import Cluster
    from atoll.objects.store import SharedStorage

BACKGROUND: Final = int(Event.BACKGROUND)
REMEMBERED: Final = 100_000  # objects of other nodes
LOOK_SECONDS: Final = 0.01
STAYS: Final = ObjectFailure(
    ErrorCode.INVALID_ARGUMENT,
    "The arguments have a function, a stub or a stream, which cannot go to a Durable Object on another node.",
)
TOO_LARGE: Final = ObjectFailure(
    ErrorCode.INVALID_ARGUMENT, "The arguments are larger than 4 MB, and the Durable Object is on another node."
)
NOT_HERE: Final = ObjectFailure(
    ErrorCode.UNAVAILABLE, "The class of this Durable Object is not on its node yet.", is_retryable=True
)


async def linked(settings: Settings, cluster: Cluster, among: AmongNodes) -> NodeLink:
    """Open the link to the other nodes. Raises StartError."""
    link = NodeLink(cluster.postgres, cluster.link_key, cluster.members.session, among.served)
    host, _, port = (settings.node_link or f"{settings.host}:0").rpartition(":")
    host = host.strip("[]")
    shown = host
    if host in ("", "0.0.0.0", "::"):
        shown = cluster.members.address.rpartition(":")[0].strip("[]")
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise StartError(f"node_link is {settings.node_link!r}", "use host:port, such as 10.0.0.5:7480", "node_link")
    await link.open(host, int(port), shown)
    among.join(link)
    return link


class RuntimeOfNode(CallHome, Protocol):
    """What this needs of the runtime."""

    live: dict[ObjectKey, LiveObject]
    hibernation: Hibernation
    resolve: Callable[[ObjectKey], tuple[ObjectTarget, Version] | None]

    def end(self, live: LiveObject, failure: ObjectFailure) -> None: ...

    def home(self, key: ObjectKey, target: ObjectTarget, version: Version) -> LiveObject: ...

    def take(self, live: LiveObject, call: Call, target: ObjectTarget, head: bytes) -> None: ...


class AmongNodes:
    def __init__(self, runtime: RuntimeOfNode, store: SharedStorage) -> None:
        self._runtime = runtime
        self._store = store
        self.losses = 0  # what was opened before the last one may not be used
        self._link: NodeLink | None = None
        self.far = FarCalls(self._reroute)
        self.far.on_lost = self._forget_node
        self.served = ServedCalls()
        self.served.among = self
        self._owners: dict[ObjectKey, LinkConnection] = {}
        store.on_lost = self._lose_all
        store.is_wanted = lambda key: key in runtime.live or runtime.hibernation.count(*key) > 0

    def join(self, link: NodeLink) -> None:
        self._link = link

    def counts(self) -> dict[str, int]:
        return {"sent_to_node": self.far.sent, "served_to_node": self.served.count} | self._store.counts()

    # --- the lease ---

    def check_lease(self) -> None:
        if not self._store.holds():
            self._lose_all()

    def may_leave(self, live: LiveObject) -> bool:
        """Whether what an object has sent may leave now."""
        self.check_lease()
        return live.state != CLOSED

    def _lose_all(self) -> None:
        """Reset every object. Clients of hibernatable WebSockets connect again, and reach the node that has it."""
        self.losses += 1
        for live in list(self._runtime.live.values()):
            if live.state != OPENING:
                self._runtime.end(live, failures.LOST)
        self._runtime.hibernation.leave()

    # --- calls to other nodes ---

    def send(
        self,
        target: ObjectTarget,
        version: Version,
        head: bytes,
        body: bytes,
        ended: bool,
        caller: CallListener,
        event: int,
        hops: int,
        now: float,
    ) -> Call | None:
        """Call an object that another node is known to have. None: it is not known."""
        connection = self._owners.get(ObjectKey(target.namespace, target.id))
        pool = self._runtime.pool
        if connection is None or not connection.is_open or pool is None:
            return None
        call = Call(version, head, body, ended, caller, pool, now, event, hops)
        self._send_one(connection, call, target, head)
        return call

    async def pass_on(self, live: LiveObject, elsewhere: Elsewhere) -> Failure | None:
        """Send the calls that wait for an object to the node that has it. A failure if that cannot be reached."""
        connection = await self._link.to(elsewhere.session, self.far) if self._link is not None else None
        if connection is None or not connection.is_open:
            return failures.ELSEWHERE
        if len(self._owners) >= REMEMBERED:
            self._owners.clear()
        self._owners[live.key] = connection
        self._store.moved(live.key)
        self._runtime.hibernation.leave(live.key)
        live.state = CLOSED
        if self._runtime.live.get(live.key) is live:
            del self._runtime.live[live.key]
        waiting, live.waiting, live.waiting_bytes = live.waiting, {}, 0
        for call, (target, head) in waiting.items():
            self._send_one(connection, call, target, head)
        return None

    async def claim(self, key: ObjectKey, elsewhere: Elsewhere) -> bool:
        """Have the node that has an object end it there, and let it go."""
        connection = await self._link.to(elsewhere.session, self.far) if self._link is not None else None
        return connection is not None and await self.far.claim(connection, key)

    def _send_one(self, connection: LinkConnection, call: Call, target: ObjectTarget, head: bytes) -> None:
        assert self._runtime.pool is not None
        refusal = STAYS if target.is_local else TOO_LARGE if len(call.body) > frames.MAX_BODY else None
        if isinstance(call.session, ServedCall) or call.event == BACKGROUND:
            refusal = failures.ELSEWHERE  # alarms, and events of sockets that are held here, are of this node
        if refusal is not None:
            if call.object is None:  # its record names the object
                call.head = addressed(head, call.event, target, LiveObject(target, call.version, call.started))
            self._runtime.pool.refuse(call, refusal)
        else:
            self.far.send(connection, call, target, head)

    def _reroute(self, call: Call, target: ObjectTarget, head: bytes) -> None:
        """The node that was thought to have an object does not, and the call has not begun."""
        self._owners.pop(ObjectKey(target.namespace, target.id), None)
        live = self._runtime.home(ObjectKey(target.namespace, target.id), target, call.version)
        adopt(self._runtime, live, call)
        self._runtime.take(live, call, target, head)

    def _forget_node(self, connection: LinkConnection) -> None:
        self._owners = {key: each for key, each in self._owners.items() if each is not connection}

    # --- calls of other nodes ---

    def serve(self, said: frames.LinkedCall, served: ServedCall) -> None:
        key = ObjectKey(said.namespace, said.id)
        found = self._runtime.resolve(key)
        if found is None:
            served.on_failure(NOT_HERE)
            return
        target, version = found
        target = target._replace(class_name=said.class_name, name=said.name, path=tuple(said.path))
        self._owners.pop(key, None)
        call = self._runtime.call(target, version, said.head, said.body, said.ended, served, said.event, said.hops)
        call.session = served  # so it goes no further
        served.call = call

    async def let_go(self, key: ObjectKey) -> bool:
        """Another node wants an object, such as to delete it: end it here."""
        for _ in range(100):
            if (live := self._runtime.live.get(key)) is not None:
                self._runtime.end(live, failures.LOST)
            self._runtime.hibernation.delete(lambda each: each == key)
            if await self._store.release(key):
                return True
            await asyncio.sleep(LOOK_SECONDS)
        return False
