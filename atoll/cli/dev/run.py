"""Starts a session: its event loop, and the node's log in the terminal."""

from __future__ import annotations

import asyncio
import logging
import sys

import uvloop

from atoll.cli.dev.first import Begun
from atoll.cli.dev.session import Session
from atoll.cli.options import WantedProject
from atoll.cli.talk import paint, printable
from atoll.config import Settings


class ShortFormat(logging.Formatter):
    """Prints warnings of the node among the lines of calls."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(f"{paint(record.levelname.lower() + ':', fg='yellow')} {record.getMessage()}")


def run_session(chosen: list[WantedProject], settings: Settings, begun: Begun, *, as_json: bool) -> None:
    """Raises StartError."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(ShortFormat())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])

    async def main() -> None:
        await Session(chosen, settings, begun, as_json=as_json).run()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
