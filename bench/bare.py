"""Runs `atoll` with engines that measure no CPU time. Only bench/sandbox_overhead.py uses it."""

from __future__ import annotations

from atoll.cli.main import main
from atoll.engine.process.engine_process import EngineCommand

arguments = EngineCommand.arguments


def unmeasured(command: EngineCommand) -> list[str]:
    return [*arguments(command), "--limits", "off"]


if __name__ == "__main__":
    EngineCommand.arguments = unmeasured  # type: ignore[method-assign, assignment]
    main()
