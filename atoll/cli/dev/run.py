"""Starts a session: its settings, its event loop, and what the node's own log may say in a terminal."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import uvloop

from atoll.cli.dev.first import FirstBuild
from atoll.cli.dev.node import CONTROL_HOST
from atoll.cli.dev.session import Session
from atoll.cli.talk import paint
from atoll.config import Settings

DATA = Path(".atoll") / "dev"


class ShortFormat(logging.Formatter):
    """Warnings of the node among the lines of calls."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{paint(record.levelname.lower() + ':', fg='yellow')} {record.getMessage()}"


def run_session(
    path: Path | None, environment: str, first: FirstBuild, host: str, port: int, began: float, *, as_json: bool
) -> None:
    """Raises StartError."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(ShortFormat())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    settings = Settings(
        host=host,
        port=port,
        data=first.project.folder / DATA,
        control_hosts=(CONTROL_HOST,),
        engines=1,  # one person asks: the second engine would only cost time at the start
        spares=2,
        drain_seconds=2.0,
    )

    async def main() -> None:
        await Session(path, environment, settings, first, as_json=as_json).run(began)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
