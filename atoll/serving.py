"""A node in a process of its own, until it is told to stop: `atoll serve`."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Sequence

import click
import uvloop

from atoll.app import Node, Origins
from atoll.config import Settings
from atoll.control.examples import deploy_example
from atoll.front.heap import collect_seldom, keep_freed_memory

LOG_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


async def serve(settings: Settings, examples: Sequence[str], greet: Callable[[Node], None], origins: Origins) -> None:
    node = Node(settings, origins=origins)
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    hang_up = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]  # ignored with `nohup`
    for number in (numbers := [signal.SIGTERM, signal.SIGINT, *hang_up]):
        loop.add_signal_handler(number, stopping.set)
    await node.start()
    try:
        for example in examples:
            await deploy_example(node.deployer, example)
        greet(node)
        collect_seldom()
        await stopping.wait()
        for number in numbers:  # a second one is not patient
            loop.remove_signal_handler(number)
        click.echo("stopping: waiting for the calls in flight", err=True)
    finally:
        await node.stop()


def run(
    settings: Settings, greet: Callable[[Node], None], *, examples: Sequence[str] = (), origins: Origins = None
) -> None:
    """Run a node in this process until it is told to stop. `greet` says that it serves."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=LOG_FORMAT)
    keep_freed_memory()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(settings, examples, greet, origins))
