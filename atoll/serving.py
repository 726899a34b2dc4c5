"""Runs a node as a process, until it is stopped: `atoll serve`."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Callable, Sequence

import click
import uvloop

from atoll.app import Node, Origins
from atoll.config import Settings
from atoll.control.deploy.examples import deploy_example
from atoll.front.heap import collect_seldom, keep_freed_memory
from atoll.front.server import Listening
from atoll.plain import entry

LOG_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class LogFormatter(logging.Formatter):
    """The node's own log: times in UTC, texts of workers and clients escaped, further lines of an entry indented."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"

    def format(self, record: logging.LogRecord) -> str:
        return entry(super().format(record))


class ServedNode(Node):
    """A node that deploys examples before it answers: clients that connect earlier wait."""

    examples: Sequence[str] = ()

    async def _open(self, listening: Listening) -> None:
        for example in self.examples:
            await deploy_example(self.deployer, example)
        await super()._open(listening)


async def serve(settings: Settings, examples: Sequence[str], greet: Callable[[Node], None], origins: Origins) -> None:
    node = ServedNode(settings, origins=origins)
    node.examples = examples
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    hang_up = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]  # ignored with `nohup`
    for number in (numbers := [signal.SIGTERM, signal.SIGINT, *hang_up]):
        loop.add_signal_handler(number, stopping.set)
    await node.start()
    try:
        greet(node)
        collect_seldom()
        await stopping.wait()
        for number in numbers:  # a second signal skips the drain
            loop.remove_signal_handler(number)
        click.echo("stopping: waiting for the calls in flight", err=True)
    finally:
        await node.stop()


def run(
    settings: Settings, greet: Callable[[Node], None], *, examples: Sequence[str] = (), origins: Origins = None
) -> None:
    """Run a node in this process until it is stopped. `greet` is called once it serves."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter(LOG_FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    keep_freed_memory()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(settings, examples, greet, origins))
