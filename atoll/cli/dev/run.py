"""Starts a session: its event loop, and what the node's own log may say in a terminal."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import uvloop

from atoll.cli.dev.first import Begun
from atoll.cli.dev.session import Session
from atoll.cli.talk import paint
from atoll.config import Settings


class ShortFormat(logging.Formatter):
    """Warnings of the node among the lines of calls."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{paint(record.levelname.lower() + ':', fg='yellow')} {record.getMessage()}"


def run_session(path: Path | None, environment: str, settings: Settings, begun: Begun, *, as_json: bool) -> None:
    """Raises StartError."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(ShortFormat())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])

    async def main() -> None:
        await Session(path, environment, settings, begun, as_json=as_json).run()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
