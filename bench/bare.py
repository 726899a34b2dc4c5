"""`atoll` with engines that measure no CPU time, for bench/sandbox_overhead.py. Nobody else should want this."""

from __future__ import annotations

from atoll.cli.main import main
from atoll.engine.process import EngineCommand

arguments = EngineCommand.arguments


def unmeasured(command: EngineCommand) -> list[str]:
    return [*arguments(command), "--limits", "off"]


if __name__ == "__main__":
    EngineCommand.arguments = unmeasured  # type: ignore[method-assign, assignment]
    main()
