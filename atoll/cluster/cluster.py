"""This node in its cluster: connects, joins, follows what others change, and leaves."""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
from collections.abc import Awaitable, Callable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Protocol

from atoll import __version__
from atoll.cluster.nodes import MAIN, RENEW_SECONDS, Membership, NodeState
from atoll.cluster.shared_files import SharedFiles
from atoll.cluster.taking_over import take_over
from atoll.config import Settings
from atoll.db.shared import SharedDatabase
from atoll.errors import StartError, StorageFailed
from atoll.postgres.migrate import migrate
from atoll.postgres.pool import Postgres

log = logging.getLogger("atoll.cluster")

POLL_SECONDS = 1.0
TIDY_SECONDS = 60.0
SEEN_SECONDS = 2.0  # that a change waits for the other nodes
LOOK_SECONDS = 0.05
PROOF = "atoll"  # sealed with the root key


class Proves(Protocol):
    """Seals and opens (control/store/vault.py). Opening raises an exception if the key is another one."""

    def seal(self, value: str, tenant: str, worker_id: str, name: str) -> bytes: ...
    def open(self, sealed: bytes, tenant: str, worker_id: str, name: str) -> str: ...
    def derive(self, purpose: str) -> bytes: ...


class Cluster:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.is_alone = settings.only_node == "on"
        self.postgres = Postgres(settings.store)
        self.files = SharedFiles(self.postgres, settings.data)
        address = settings.node_address or f"{settings.host}:{settings.port}"
        name = settings.node_name or address
        self.members = Membership(self.postgres, name=name, address=address, release=__version__, alone=self.is_alone)
        self.session = secrets.token_hex(8)
        self.on_drain: Callable[[], None] = lambda: None
        self._looks: list[Callable[[], Awaitable[None]]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()
        self._tables: list[str] = []  # kinds of bindings with tables in PostgreSQL
        self._everything = 0  # the number of the feed up to which this node has everything
        self.is_cut_off = False
        self.link_key = b""  # of the links between nodes; set by `join`

    async def open(self, tables: Mapping[str, Traversable], files: Mapping[str, Traversable]) -> None:
        """Connect, migrate, and open the shared databases. `tables` are the migrations of bindings with tables in
        PostgreSQL, `files` those of their small databases that nodes share. Raises StartError."""
        refuse_other_folder(self._settings)
        await self.postgres.open()
        self._tables = sorted(tables)
        await migrate(self.postgres, {"cluster": resources.files("atoll.cluster") / "migrations", **tables})
        for name, migrations in files.items():
            await self.files.open(name, migrations)
            await take_over(self.files.databases[name], self._settings.data / f"{name}.db", migrations)
        await self.files.open(MAIN, None)

    @property
    def database(self) -> SharedDatabase:
        return self.files.databases[MAIN]

    async def prove(self, vault: Proves) -> None:
        """Check that this node has the root key of the others. Raises StartError."""
        proof = await self.postgres.value("SELECT proof FROM feed")
        if proof is None:
            sealed = vault.seal(PROOF, "", "", "cluster")
            await self.postgres.run("UPDATE feed SET proof = $1 WHERE proof IS NULL", sealed)
            proof = await self.postgres.value("SELECT proof FROM feed")
        try:
            vault.open(proof, "", "", "cluster")
        except Exception as error:
            raise StartError(
                f"this node does not have the root key of the cluster: {error}",
                "copy the file root-key from the data folder of another node, or give all the same ATOLL_ROOT_KEY",
            ) from None

    async def join(self, vault: Proves) -> None:
        """Raises StartError."""
        await self.prove(vault)
        self.link_key = vault.derive("link between nodes")
        shared = {name: database.schema for name, database in self.files.databases.items()}
        self.members.schemas = shared | {f"tables of {kind}": 1 for kind in self._tables}
        await self.members.join(self.session, self._everything)
        self._tasks = [asyncio.ensure_future(each()) for each in (self._follow, self._renew, self._tidy)]

    async def serve(self) -> None:
        await self._become(NodeState.SERVING)

    async def drain(self) -> None:
        await self._become(NodeState.DRAINING)

    async def _become(self, state: NodeState) -> None:
        self.members.state = state
        try:
            await self.members.renew(self._everything)
        except StorageFailed:
            pass  # the next renewal says it

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.files.close()
        try:
            if self.members.session:
                await self.members.leave()
        except StorageFailed:
            pass  # the lease ends by itself
        await self.postgres.close()

    def when_renewed(self, act: Callable[[], Awaitable[None]]) -> None:
        """Call `act` after each renewal of the lease: it looks for work, and frees what dead nodes had."""
        self._looks.append(act)

    # Following

    async def settled(self) -> list[str]:
        """Wait until every live node has what was changed up to now; returns those that have not in time."""
        seq = await self.postgres.value("SELECT head FROM feed")
        until = asyncio.get_running_loop().time() + SEEN_SECONDS
        while True:
            names = [name for name in await self.members.behind(seq) if name != self.members.name]
            if not names or asyncio.get_running_loop().time() > until:
                return names
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        """Take over what is new in the feed, and say so."""
        head: int = await self.postgres.value("SELECT head FROM feed")
        if head > self._everything:
            for database in self.files.databases.values():  # the main one last: its workers use the others
                await database.follow()
            self._everything = head
            await self.members.renew(head)

    async def _follow(self) -> None:
        listener = asyncio.ensure_future(self._listen())
        try:
            while True:
                self._changed.clear()
                try:
                    await self._look()
                    self._say(None)
                except StorageFailed as error:
                    self._say(error)
                except Exception:
                    log.exception("the changes of other nodes cannot be followed")
                try:
                    async with asyncio.timeout(POLL_SECONDS * random.uniform(0.8, 1.0)):
                        await self._changed.wait()
                except TimeoutError:
                    pass
        finally:
            listener.cancel()

    async def _listen(self) -> None:
        """Hints that something changed. Without them, the next poll finds it."""
        while True:
            await self.postgres.listen("atoll", self._changed.set)
            await asyncio.sleep(POLL_SECONDS)

    def _say(self, error: StorageFailed | None) -> None:
        is_cut_off = error is not None
        if is_cut_off and not self.is_cut_off:
            log.error("the cluster cannot be followed: %s. Workers go on; nothing can be changed", error)
        if not is_cut_off and self.is_cut_off:
            log.warning("the cluster can be followed again")
        self.is_cut_off = is_cut_off

    async def _renew(self) -> None:
        while True:
            try:
                wanted = await self.members.renew(self._everything)
                if wanted is None:
                    log.warning("the lease of this node had ended: it joins again")
                    await self.members.leave()
                    await self.members.join(self.session, self._everything)
                elif wanted == "drain" and self.members.state is NodeState.SERVING:
                    log.warning("an operator drains this node")
                    await self.drain()
                    self.on_drain()
                for act in self._looks:
                    await act()
            except (StorageFailed, StartError) as error:
                log.debug("the lease cannot be renewed: %s", error)
            except Exception:
                log.exception("the lease cannot be renewed")
            await asyncio.sleep(RENEW_SECONDS * random.uniform(0.9, 1.0))

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(TIDY_SECONDS * random.uniform(0.5, 1.0))
            try:
                await self.files.tidy()
                await self.members.forget_dead()
            except StorageFailed as error:
                log.warning("the log of changes cannot be tidied: %s", error)
            except Exception:
                log.exception("the log of changes cannot be tidied")


def refuse_other_folder(settings: Settings) -> None:
    """A folder that was used without PostgreSQL has workers that PostgreSQL does not have. Raises StartError."""
    if (settings.data / f"{MAIN}.db").exists():
        raise StartError(
            f"the data folder {settings.data} belongs to a node without PostgreSQL: its workers would be missing",
            f"choose another folder with --data, or move this one: atoll migrate into-postgres --data {settings.data}",
        )
