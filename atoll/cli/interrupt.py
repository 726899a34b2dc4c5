"""Signals that stop a command while it still imports its modules."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Ctrl-C ends the process silently: nothing needs cleaning up yet.

    Python would raise KeyboardInterrupt at the current line, with a traceback. In a callback, as imports have them, it
    would print the error and go on.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored, or handled by other code
        yield
        return
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:  # not in the main thread, where signals cannot be handled
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Interrupt:
    """Catches stop signals until an event loop handles them. `came` holds the signal; the event loop checks it."""

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
    """The stop signals. A closed terminal (SIGHUP) is one, unless `nohup` ignores it."""
    hangs_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hangs_up else [])]
