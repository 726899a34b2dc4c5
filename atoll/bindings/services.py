"""The services that a node offers to its bindings. The constructor of a binding takes those it needs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import Struct, field

from atoll.asset_files.store import AssetStore
from atoll.bindings.events import Events
from atoll.bindings.passes import Passes
from atoll.bindings.scope import CallScope
from atoll.config import Settings
from atoll.db.sqlite import Database
from atoll.egress.gate import EgressGate
from atoll.errors import Failure
from atoll.holdings import Holdings
from atoll.objects.store import ObjectKey, ObjectStorage
from atoll.pacer import Pacer
from atoll.workers import Version

if TYPE_CHECKING:
    from atoll.cluster.cluster import Cluster  # with the driver of PostgreSQL: a node by itself starts without


class FacetTarget(NamedTuple):
    """What makes an object a facet of another one."""

    parent: ObjectKey
    root: str  # the id of the outermost object
    path: tuple[str, ...]  # the names that lead to it from there
    shown: str  # the id that it sees as its own
    shown_name: str | None
    props: dict[str, Any]


class ObjectTarget(NamedTuple):
    """A Durable Object that is called, and the method if it is called by one."""

    namespace: str  # its id
    id: str  # 64 hexadecimal digits
    class_name: str
    is_sql: bool
    name: str | None = None  # if it was reached by name
    path: tuple[str, ...] = ()  # the names of the method, if it is called by one
    facet: FacetTarget | None = None
    is_local: bool = False  # what is sent to it cannot go to another node


class ServiceWay(NamedTuple):
    """A service binding, for calls that go through it without Python (engine/calls/inside.py)."""

    name: bytes  # of the binding
    entry: bytes  # the entry point in logs
    address: bytes  # JSON of the entry point
    is_named: bool  # whether a fetch names it
    zone: bytes  # the host of the caller


class InnerRequest(NamedTuple):
    """A call of a worker by another. `head` is that of a CALL frame."""

    version: Version
    head: bytes
    body: bytes = b""
    ended: bool = True  # if false, more of the body follows by `write`
    hops: int = 0  # of the calling scope
    event: int = 0
    within: CallScope | None = None  # the calling scope, if the callee's subrequests count for it too
    target: ObjectTarget | None = None  # the Durable Object that is called; the head does not name it
    session: object = None  # the RPC session of a method call (bindings/rpc)
    way: ServiceWay | None = None  # if later calls like this one may go without Python

    @property
    def reader(self) -> str:
        """The tenant that reads the response."""
        return (self.within.version if self.within is not None else self.version).tenant


class InnerResponse(NamedTuple):
    """The response of a worker: `head` is that of a RESPONSE frame. Both fields come from an engine: check them."""

    status: int
    head: bytes


class InnerCall(Protocol):
    """A call in progress between two workers of this node. Close it when its result is not needed any more."""

    async def response(self) -> InnerResponse:
        """Status and header lines. CalleeFailed if the call ended without them."""

    @property
    def answer(self) -> InnerResponse | Failure | None:
        """The response, or how the call ended without one; None: not known yet."""

    def listen(self, listener: Callable[[], None]) -> None:
        """Set a callback that runs once, when `answer` is known or the call was closed."""

    async def read(self) -> bytes:
        """More of the response body; b"" at its end. CalleeFailed if it broke off. One read at a time."""

    def read_nowait(self) -> bytes:
        """The part of the response body that has already arrived."""

    @property
    def at_end(self) -> bool:
        """Whether all of the response body has arrived and was read."""

    async def write(self, chunk: bytes, ended: bool) -> bool:
        """Send a piece of the request body; returns when there is room for more. False: the worker needs no more."""

    def hear(self, messages: int) -> None:
        """Announce the number of WebSocket messages in the next write."""

    @property
    def is_held(self) -> bool:
        """Whether it became a WebSocket that outlives the call."""

    def release(self) -> object | None:
        """Such a socket, to be passed on. This call is closed then."""

    def leave(self, last: bytes, seconds: float) -> None:
        """Send the last piece of the request body without waiting. The response is dropped; the call ends by itself."""

    def close(self) -> None: ...


class MethodCall(InnerCall, Protocol):
    """A call in progress of a method of another worker. `answer` is set when its value begins to arrive."""

    on_end: Callable[[], None] | None  # called when the call is over: streams in its value have been sent by then
    thrown: dict[str, Any]  # the details of a thrown exception besides name and message

    @property
    def is_kept(self) -> bool:
        """Whether the value has stubs, for which the callee stays open."""

    def value_nowait(self) -> bytes | None:
        """The return value, if all of it has arrived."""

    async def value(self) -> bytes:
        """The return value. CalleeFailed if the method threw, or ended in another way."""


class InnerCalls(Protocol):
    """Calls between the workers of this node, without sockets (engine/calls/between_workers.py).

    LoopDetected if the chain of workers is too long. Any other failure is the answer of the call.
    """

    def start(self, request: InnerRequest) -> InnerCall: ...

    def method(self, request: InnerRequest) -> MethodCall: ...


class ListedSocket(NamedTuple):
    """A hibernatable WebSocket of an object."""

    number: int
    tags: list[str]
    attachment_bytes: int | None  # None: nothing is attached
    responded_ms: float | None  # when it got its last automatic response


class Objects(Protocol):
    """The Durable Objects of this node (engine/objects/runtime.py)."""

    store: ObjectStorage
    # Set by the binding. The class and version of an object, for its alarm; None if they are gone.
    resolve: Callable[[ObjectKey], tuple[ObjectTarget, Version] | None]
    stop_alarms: Callable[[], None]  # start no more of them
    refuses_new: Callable[[str], str]  # why a namespace, by its id, may not have one more object; "" if it may

    def counts(self) -> dict[str, int]:
        """What happened to objects, for metrics."""

    def update(self, version: Version, moved: Collection[str] = ()) -> None:
        """This version of its worker is active: objects that run other code are reset, and those in namespaces that
        were moved to another worker."""

    async def delete(self, key: ObjectKey) -> None:
        """Delete what an object stored. If it is in use, its calls fail."""

    async def restore(self, key: ObjectKey, bookmark: str) -> str:
        """Take an object back to a bookmark. Its calls fail. Returns the bookmark that undoes it."""

    async def delete_namespace(self, namespace: str) -> None: ...

    def target(self, key: ObjectKey) -> ObjectTarget | None:
        """An object in use, as it was last called."""

    def reset(self, key: ObjectKey, reason: str) -> None:
        """Reset an object if it is in use: its calls fail with the reason."""

    def count(self, namespace: str | None = None) -> int:
        """The objects in use."""

    def sockets(self, namespace: str | None = None, id: str | None = None) -> int:
        """The hibernatable WebSockets of an object, of a namespace, or of all."""

    def list_sockets(self, key: ObjectKey, after: int, limit: int) -> list[ListedSocket]:
        """The hibernatable WebSockets of an object with numbers above `after`, the oldest first."""


class Workers(Protocol):
    """The deployed workers (control/deploy/deployer.py)."""

    def find_worker(self, tenant: str, name: str) -> Version | None:
        """The active version of a worker of a tenant."""

    def is_split(self, tenant: str, name: str) -> bool:
        """Whether calls of a worker go to several of its versions."""

    def how_to_get(self, name: str) -> str:
        """The hint for a worker that does not exist."""


class Routes(Protocol):
    """The version that serves a host and path of this node (router.py)."""

    def find(self, host: bytes, target: bytes, head: bytes = b"") -> Version | None: ...


class Seals(Protocol):
    """Seals secrets at rest (control/store/vault.py). A sealed value opens only for the same tenant, place and name."""

    def seal(self, value: str, tenant: str, worker_id: str, name: str) -> bytes: ...
    def open(self, sealed: bytes, tenant: str, worker_id: str, name: str) -> str: ...


class Services(Struct, frozen=True):
    settings: Settings
    database: Database
    routes: Routes
    inner: InnerCalls
    events: Events
    workers: Workers
    gate: EgressGate
    seals: Seals
    pacer: Pacer = field(default_factory=Pacer)
    holdings: Holdings = field(default_factory=Holdings)
    files: AssetStore | None = None  # of static assets; None: the binding makes its own
    objects: Objects | None = None  # None: the node has no engines
    passes: Passes = field(default_factory=Passes)
    cluster: Cluster | None = None  # the nodes that this one shares a PostgreSQL with; None: it is by itself

    @property
    def shares_objects(self) -> bool:
        """Whether other nodes run the same Durable Objects. A node that is the only one has them on its disk."""
        return self.cluster is not None and not self.cluster.is_alone

    def place_of(self, file: str) -> Path | Database:
        """Where a binding has the tables of its own: a file, or the database that nodes share (`shared_file` of its
        manifest)."""
        if self.cluster is not None:
            return self.cluster.files.databases[file]
        return self.settings.data / f"{file}.db"
