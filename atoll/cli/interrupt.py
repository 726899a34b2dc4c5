"""Ctrl-C while a command is still importing what it runs."""

from __future__ import annotations

import signal
from types import FrameType


class Interrupt:
    """Ctrl-C until an event loop handles it: `came` remembers it, and whoever starts looks there.

    Python would raise it wherever it stands. Where that is a callback (imports have them), the error is printed
    and lost, and a node would start that nobody wants.
    """

    def __init__(self) -> None:
        self.came = False

    def __enter__(self) -> Interrupt:
        self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.came = True
