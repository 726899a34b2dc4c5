"""The node that takes the place of a running one: prepares everything it can, then takes over.

Engines, imports and checks come first, while the old process serves. Only then does it ask for the data folder. So an
upgrade that cannot start fails before anything has changed, and clients wait only while the folder changes hands.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from atoll.app import Node
from atoll.config import Settings
from atoll.db.ahead import refuse_newer
from atoll.engine.limits import pool_limits
from atoll.engine.process.prestart import FirstEngines, PrestartedEngine, engine_command, engine_options
from atoll.engine.process.recycling import RecycleLimits
from atoll.errors import StartError
from atoll.front.passed import PLAIN, SECURE, PassedSockets, fits
from atoll.handover.channel import Channel, ChannelClosed, Packet, knock
from atoll.handover.ops import serve_ops

log = logging.getLogger("atoll.handover")

HELLO_SECONDS = 20.0
RELEASE_SECONDS = 60.0
PREPARE_SECONDS = 1.0


class Arriving:
    """The conversation with the node that is replaced."""

    def __init__(self, channel: Channel, settings: Settings) -> None:
        self._channel = channel
        self._settings = settings
        self._clients: list[tuple[socket.socket, bytes]] = []
        self._listener: asyncio.Task[None] | None = None
        self._released: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._node: Node | None = None
        self._theirs: socket.socket | None = None
        self._adopting: set[asyncio.Task[None]] = set()

    @classmethod
    async def begin(cls, settings: Settings) -> Arriving | None:
        """Ask the node that serves this data folder to be replaced; None if none does. Raises StartError."""
        if settings.store != "sqlite":  # its session in the cluster cannot change hands, and the others go on serving
            raise StartError(
                "--replace does not work with a store that nodes share",
                "start another node with a folder of its own, then drain this one (atoll nodes drain) and stop it",
                "store",
            )
        try:
            channel = knock(settings.data) if settings.data.is_dir() else None
        except OSError as error:
            raise StartError(
                f"the node that uses {settings.data} cannot be asked to give way: {error.strerror}",
                "run --replace as the user that the node runs as",
            ) from None
        return cls(channel, settings) if channel is not None else None

    async def prepare(self, node: Node) -> None:
        """Everything that can fail, while the old process serves."""
        self._node = node
        packet = await self._hear()
        if packet.fields.get("say") != "ports":
            raise StartError("the running node does not know how to be replaced", "stop it, and start this one")
        node.passed = self._named(packet)
        log.info("taking over from process %s, version %s", packet.fields.get("pid"), packet.fields.get("version"))
        node.engines = FirstEngines(partial(_engines, self._settings))
        await asyncio.wrap_future(node.engines.result)
        await asyncio.to_thread(refuse_newer, self._settings.data)
        await _rehearse(self._settings)
        node.wants_control = False  # made by its first request, or by `served`: clients do not wait for it

    async def take(self) -> None:
        """Get the data folder, and the clients. From now on the old process accepts nothing."""
        self._channel.say(ask="take")
        self._listener = asyncio.ensure_future(self._listen())
        try:
            await asyncio.wait_for(asyncio.shield(self._released), RELEASE_SECONDS)
        except TimeoutError:
            raise StartError("the running node did not release the data folder", "see its log") from None

    async def served(self) -> None:
        """This node serves: adopt the clients, and take the ops of streams that the old process still has."""
        assert self._node is not None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            self._channel.say([theirs.fileno()], ask="serving")
            await self._channel.sent()
        await serve_ops(self._node, ours)
        clients, self._clients = self._clients, []
        for sock, data in clients:
            self._adopt(sock, data)
        self._theirs = ours
        asyncio.get_running_loop().call_later(PREPARE_SECONDS, lambda: self._node and self._node.control)

    def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
        self._channel.close()
        for sock, _ in self._clients:
            sock.close()
        self._clients.clear()

    async def _listen(self) -> None:
        try:
            while True:
                packet = await self._channel.hear()
                if packet.client is not None:
                    for sock in packet.sockets:
                        self._on_client(sock, packet.client)
                elif packet.fields.get("say") == "released" and not self._released.done():
                    self._released.set_result(None)
        except ChannelClosed as error:
            if not self._released.done():
                reason = f"the running node ended before it released the data folder: {error}"
                self._released.set_exception(StartError(reason, "start again, without --replace"))

    def _on_client(self, sock: socket.socket, data: bytes) -> None:
        if self._node is not None and self._theirs is not None:
            self._adopt(sock, data)
        else:
            self._clients.append((sock, data))

    def _adopt(self, sock: socket.socket, data: bytes) -> None:
        assert self._node is not None
        task = asyncio.ensure_future(self._node.server.adopt(sock, data))
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)

    def _named(self, packet: Packet) -> PassedSockets:
        """The ports in a message, if they are those of our settings."""
        sockets, found = packet.sockets, PassedSockets()
        for kind, count in packet.fields["names"]:
            found[kind], sockets = sockets[:count], sockets[count:]
        settings = self._settings
        for kind, port in ((PLAIN, settings.port), (SECURE, settings.https_port)):
            if kind in found and (not fits(found[kind], settings.host, port) or (kind == SECURE and not port)):
                for each in found.pop(kind):  # another address: that one is opened anew
                    each.close()
        return found

    async def _hear(self) -> Packet:
        try:
            return await self._channel.hear()
        except ChannelClosed as error:
            raise StartError(f"the running node broke off: {error}", "see its log") from None


async def _rehearse(settings: Settings) -> None:
    """Make a node in a folder of its own: what cannot be made fails here, and all modules are imported."""
    with TemporaryDirectory(prefix="atoll-replace-") as folder:
        ports = {name: 0 for name in settings.of_bindings if name.endswith("_port")}
        there = replace(
            settings,
            data=Path(folder),
            store="sqlite",  # nothing of a rehearsal may reach what nodes share
            otlp_endpoint="",
            otlp_metrics_endpoint="",
            otlp_logs_endpoint="",
            of_bindings={**settings.of_bindings, **ports},
        )
        rehearsal = Node(there, listens=False)
        try:
            await rehearsal.make()
            _ = rehearsal.control
        finally:
            await rehearsal.stop()


def _engines(settings: Settings) -> PrestartedEngine:
    """All engines of the shared group, ready. Blocks."""
    recycling = RecycleLimits(settings.restart_memory_mb, settings.restart_hours, settings.min_free_mb)
    options = engine_options(settings)
    command = engine_command(options, recycling.engine_bytes, pool_limits(settings).max_loaded)
    engines = PrestartedEngine(command, settings.engines)
    try:
        engines.wait(HELLO_SECONDS)
    except BaseException:
        engines.close()
        raise
    return engines
