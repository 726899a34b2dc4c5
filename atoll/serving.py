"""Runs a node as a process, until it is stopped or another process takes its place: `atoll serve`.

SIGTERM and SIGINT   drain and stop
SIGHUP               reload what can change while the node runs (reloading.py); with a terminal, stop
SIGUSR1              open the file of the access log again
SIGUSR2              start `atoll serve --replace` with the same arguments, which takes the place of this process
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from socket import socketpair
from typing import NamedTuple

import click
import uvloop

from atoll.app import Node, Origins
from atoll.config import Settings
from atoll.control.deploy.examples import deploy_example
from atoll.engine.process.prestart import FirstEngines
from atoll.front.heap import collect_seldom, freeze, keep_freed_memory
from atoll.front.passed import PassedSockets, passed_sockets
from atoll.front.server import Listening
from atoll.handover.arriving import Arriving
from atoll.handover.channel import Channel, ChannelClosed, Door
from atoll.handover.leaving import Leaving
from atoll.handover.notify import notify
from atoll.handover.ops import serve_ops
from atoll.handover.reloading import Reload, reload_into
from atoll.node_log import set_up_log
from atoll.observe.machine import machine_problems

log = logging.getLogger("atoll")


class Given(NamedTuple):
    """What the command gives besides the settings."""

    examples: Sequence[str] = ()
    origins: Origins = None
    reload: Reload | None = None
    engines: FirstEngines | None = None  # of the first node of the process


class ServedNode(Node):
    """A node that deploys examples before it answers: clients that connect earlier wait. The control API is made
    after that."""

    wants_control = False
    examples: Sequence[str] = ()

    async def _open(self, listening: Listening) -> None:
        for example in self.examples:
            await deploy_example(self.deployer, example)
        await super()._open(listening)


class Serving:
    """The process: its signals, the node that it runs now, and the door for the process that takes its place."""

    def __init__(self, settings: Settings, given: Given) -> None:
        self._settings = settings
        self._given = given
        self._stopping = asyncio.Event()
        self._ending: set[asyncio.Task[None]] = set()  # nodes whose open streams end, and other work on the side
        self._signals: list[signal.Signals] = []
        self._node: Node | None = None  # the one that serves

    async def run(self, greet: Callable[[Node], None], replaces: bool) -> None:
        self._listen_to_signals()
        for problem in machine_problems(self._settings.data):
            log.warning("%s (%s)", problem.text, problem.hint)
        passed = passed_sockets(os.environ)
        arriving = await Arriving.begin(self._settings) if replaces else None
        if replaces and arriving is None:
            log.info("no node uses %s: there is nothing to replace", self._settings.data)
        node: Node = await self._arrive(passed, arriving)
        try:
            door = self._door(node)
            if arriving is not None:
                await arriving.served()
            notify(f"MAINPID={os.getpid()}", "READY=1")
            with suppress(OSError):  # the terminal has closed; SIGHUP tells that too
                greet(node)
            collect_seldom()
            if arriving is None:
                self._bring_control(node)
            node = await self._serve(node, door)
        finally:
            if arriving is not None:
                arriving.close()
            await node.stop()
            await asyncio.gather(*self._ending, return_exceptions=True)

    def _make(self, passed: PassedSockets) -> ServedNode:
        node = ServedNode(self._settings, origins=self._given.origins)
        node.examples, node.passed = self._given.examples, passed
        return node

    async def _arrive(self, passed: PassedSockets, arriving: Arriving | None) -> ServedNode:
        node = self._make(passed)
        node.engines = self._given.engines
        try:
            if arriving is not None:
                await arriving.prepare(node)
                await arriving.take()
            await node.start()
        except BaseException:
            if node.engines is not None:
                node.engines.close()
            if arriving is not None:
                arriving.close()  # the old process goes on
            raise
        self._settings = node.settings  # with the port that the system chose
        return node

    def _door(self, node: Node) -> Door:
        door = Door(self._settings.data)
        node.folder.users.append(door)
        return door

    async def _serve(self, node: Node, door: Door) -> Node:
        """Until a signal, or until another process serves. Returns the node that is to be stopped."""
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            while True:
                self._node = node
                knock = asyncio.ensure_future(door.next())
                await asyncio.wait((stopping, knock), return_when=asyncio.FIRST_COMPLETED)
                if not knock.done():
                    knock.cancel()
                    break
                leaving = Leaving(node, knock.result())
                outcome = await self._give_way(leaving, knock.result(), stopping)
                if outcome is None:
                    continue
                door.leave()
                if outcome:
                    click.echo("another process serves: waiting for open streams", err=True)
                    await leaving.finish()
                    return node
                node = await self._go_on(leaving)
                door = self._door(node)
            for number in self._signals:  # a second signal skips the drain
                asyncio.get_running_loop().remove_signal_handler(number)
            notify("STOPPING=1")
            click.echo("stopping: waiting for the calls in flight", err=True)
            door.close()
            return node
        finally:
            stopping.cancel()

    async def _give_way(self, leaving: Leaving, channel: Channel, stopping: asyncio.Task[bool]) -> bool | None:
        """Whether another process serves now; None if nothing has changed."""
        attempt = asyncio.ensure_future(leaving.run())
        await asyncio.wait((attempt, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not attempt.done() and not leaving.has_begun:
            attempt.cancel()
        try:
            return await attempt
        except ChannelClosed as error:
            log.warning("a process that wanted to take over did not: %s", error)
        except asyncio.CancelledError:
            if not attempt.cancelled():
                raise
        channel.close()
        return None

    async def _go_on(self, leaving: Leaving) -> Node:
        """The successor failed when this process had given up everything: serve again, on the same ports."""
        ports, clients = leaving.remains
        node = self._make(ports)
        await node.start()
        ours, theirs = socketpair()
        await serve_ops(node, ours)
        leaving.ops.attach(theirs)
        for sock, data in clients:
            await node.server.adopt(sock, data)
        self._keep(asyncio.ensure_future(leaving.finish()))
        self._bring_control(node)
        log.warning("this process serves again")
        return node

    def _bring_control(self, node: Node) -> None:
        async def bring() -> None:
            await node.late_control.bring()
            freeze()

        self._keep(asyncio.ensure_future(bring()))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        self._signals = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and has_terminal():  # ignored with `nohup`
            self._signals.append(signal.SIGHUP)
        else:
            loop.add_signal_handler(signal.SIGHUP, self._on_reload)
        for number in self._signals:
            loop.add_signal_handler(number, self._stopping.set)
        if signal.SIGHUP in self._signals:
            loop.add_signal_handler(signal.SIGHUP, self._on_hangup, [fd for fd in (1, 2) if os.isatty(fd)])
        loop.add_signal_handler(signal.SIGUSR1, self._on_reopen)
        loop.add_signal_handler(signal.SIGUSR2, start_successor)

    def _on_hangup(self, shown: Sequence[int]) -> None:
        """The terminal has closed: what is written to it would fail."""
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        for fd in shown:
            os.dup2(nowhere, fd)
        os.close(nowhere)
        self._stopping.set()

    def _on_reopen(self) -> None:
        access_log = self._node.server.access_log if self._node is not None else None
        if access_log is not None:
            access_log.reopen()

    def _on_reload(self) -> None:
        if self._given.reload is None or self._node is None:
            log.warning("SIGHUP: there are no settings to reload")
            return
        self._keep(asyncio.ensure_future(reload_into(self._node, self._given.reload)))


def has_terminal() -> bool:
    """Whether this process ends with a terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def start_successor() -> None:
    """Start the process that takes the place of this one, from what is installed now."""
    command = [sys.executable, *sys.argv, *(["--replace"] if "--replace" not in sys.argv else [])]
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    except OSError as error:
        log.error("the new process cannot be started: %s", error)
        return
    log.info("started process %d to take over", process.pid)
    threading.Thread(target=process.wait, daemon=True).start()  # if it fails, it is reaped


def run(
    settings: Settings,
    greet: Callable[[Node], None],
    *,
    examples: Sequence[str] = (),
    origins: Origins = None,
    replaces: bool = False,
    reload: Reload | None = None,
    engines: FirstEngines | None = None,
) -> None:
    """Run a node in this process until it is stopped. `greet` is called once it serves."""
    set_up_log(settings)
    keep_freed_memory()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Serving(settings, Given(examples, origins, reload, engines)).run(greet, replaces))
