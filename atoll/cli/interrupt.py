"""Being told to stop while a command is still importing what it runs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Ctrl-C ends the process without a word: nothing was begun that would have to be cleaned up.

    Python would raise it wherever it stands, with a traceback; and where that is a callback (imports have them) the
    error is printed and lost.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored, or somebody else's
        yield
        return
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:  # not in the main thread: then it is not ours to handle
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Interrupt:
    """Ctrl-C and its kin until an event loop handles them: `came` remembers one, and whoever starts looks there."""

    def __init__(self) -> None:
        self.came = 0  # the number of the signal
        self._before: list[tuple[signal.Signals, signal._HANDLER]] = []

    def __enter__(self) -> Interrupt:
        for number in signals_to_stop():
            self._before.append((number, signal.signal(number, self._on_signal)))
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before:
            signal.signal(number, before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.came = number


def signals_to_stop() -> list[signal.Signals]:
    """A terminal that is closed stops it too, unless `nohup` asked that it does not."""
    hangs_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hangs_up else [])]
