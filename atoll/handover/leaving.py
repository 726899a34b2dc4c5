"""The node that is replaced: gives ports, clients and the data folder to its successor, and ends in its own time.

    successor            this node
    ask       ────────►  copies of its listening sockets; it goes on serving
    take      ────────►  accepts nothing more; passes idle connections on; answers the requests that it has; closes
                         everything in the data folder; releases the lock
              ◄────────  released
    serving   ────────►  forwards what open streams still store (ops.py); ends when they have, or at `drain_seconds`

If the successor ends between `released` and `serving`, this process makes a new node on the same ports and goes on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import suppress

import atoll
from atoll.app import Node
from atoll.engine.objects.retiring import retire
from atoll.front.exchange import WAITING
from atoll.front.line import ClientLine
from atoll.front.passed import PLAIN, SECURE, PassedSockets
from atoll.front.succession import Succession
from atoll.handover.channel import Channel, ChannelClosed, Packet
from atoll.handover.ops import ForwardedOps

log = logging.getLogger("atoll.handover")

ANSWER_SECONDS = 1.0  # for the requests under way, before the folder is given away; streams are forwarded after that
OBJECT_SECONDS = 1.0  # for the calls of Durable Objects
EVENT_SECONDS = 5.0  # for batches of queues and other events
STORE_SECONDS = 5.0  # for ops that store something, such as an upload to R2
CLOSE_SECONDS = 20.0  # for everything to be closed
SUCCESSOR_SECONDS = 120.0  # to start, once it has everything
POLL = 0.002


class Leaving:
    """One attempt to replace a node. `run` returns once it is clear who serves."""

    def __init__(self, node: Node, channel: Channel) -> None:
        self.node = node
        self._channel = channel
        self._succession = Succession(node.server)
        self._kept: list[tuple[socket.socket, bytes]] = []  # clients that were passed on, until the successor serves
        self._ports = ports_of(node)
        self.ops = ForwardedOps(node.broker)
        self.has_begun = False

    async def run(self) -> bool:
        """True: the successor serves, and `finish` is next. False: this node was given up, and `remains` are its ports
        and clients. Raises ChannelClosed if nothing has changed."""
        channel = self._channel
        names = [(kind, len(sockets)) for kind, sockets in self._ports.items()]
        fds = [each.fileno() for sockets in self._ports.values() for each in sockets]
        channel.say(fds, say="ports", names=names, pid=os.getpid(), version=atoll.__version__)
        try:
            await self._expect("take")
        except ChannelClosed:
            close_all(self._ports)
            raise
        self.has_begun = True
        log.info("another process takes over, with %d connections", len(self.node.server.shared.connections))
        await self._release()
        channel.say(say="released")
        try:
            packet = await asyncio.wait_for(self._expect("serving"), SUCCESSOR_SECONDS)
        except (ChannelClosed, TimeoutError) as error:
            log.error("the new process did not start (%s): this one goes on serving", str(error) or "no answer in time")
            channel.close()
            return False
        self.ops.attach(packet.sockets.pop())
        for sock, _ in self._kept:
            sock.close()
        self._kept.clear()
        close_all(self._ports)
        return True

    @property
    def remains(self) -> tuple[PassedSockets, list[tuple[socket.socket, bytes]]]:
        return self._ports, self._kept

    async def finish(self) -> None:
        """Let open streams and WebSockets end, then end the engines. Connections are passed on until then."""
        node = self.node
        await self._succession.finish(node.settings.drain_seconds)
        await node.supervisor.drain(1.0)
        await self._channel.sent()
        await node.stop()
        self.ops.close()
        self._channel.close()

    async def _expect(self, word: str) -> Packet:
        packet = await self._channel.hear()
        if packet.fields.get("ask") != word:
            packet.close()
            raise ChannelClosed(f"it asked for {packet.fields.get('ask')!r} where {word!r} was due")
        return packet

    def _pass_client(self, fd: int, data: bytes) -> None:
        self._channel.pass_client(fd, data)
        self._kept.append((socket.socket(fileno=os.dup(fd)), data))

    async def _release(self) -> None:
        """Give up the data folder. Stores finish their writes when they close, so nothing acknowledged is lost."""
        node = self.node
        node.phase = "draining"
        node.triggers.stop()
        node.logs.hang_up()
        self._succession.begin(self._pass_client)
        await until(lambda: not unanswered(node), ANSWER_SECONDS)
        await until(lambda: not node.events.under_way, EVENT_SECONDS)
        node.events.give_up()
        await retire(node.objects.runtime, OBJECT_SECONDS)
        self.ops.hold()
        await until(lambda: not node.broker.storing, STORE_SECONDS)
        await node.warming.close()
        node.logs.elsewhere = self.ops.record
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await node.owned.aclose()
        except Exception:
            log.exception("a part of this node could not be closed")
            node.folder.close()
        await self._channel.sent()


def unanswered(node: Node) -> int:
    """Requests whose response has not begun. Those to the control API count until it is complete."""
    lines = (each for each in node.server.shared.connections if isinstance(each, ClientLine))
    exchanges = (each.exchange for each in lines if each.exchange is not None)
    return sum(each.state == WAITING or each.version is None for each in exchanges)


async def until(condition: object, seconds: float) -> None:
    """Wait for a condition, but no longer than this. Polled: it is rare, and events would make every call slower."""
    assert callable(condition)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(POLL)


def ports_of(node: Node) -> PassedSockets:
    """Copies of the sockets on which a node listens."""
    found: PassedSockets = {}
    for kind, listeners in ((PLAIN, node.server.listeners), (SECURE, node.server.secure_listeners)):
        for listener in listeners:
            found.setdefault(kind, []).extend(socket.socket(fileno=os.dup(each.fileno())) for each in listener.sockets)
    return found


def close_all(ports: PassedSockets) -> None:
    for sockets in ports.values():
        for each in sockets:
            each.close()
