"""The entry point of `atoll`."""

from __future__ import annotations

import signal
import sys

from atoll.cli.interrupt import ending_at_once


def start() -> None:
    with ending_at_once():
        from atoll.cli.main import main
        from atoll.cli.talk import show_bug

        sys.excepthook = show_bug
    try:
        main()
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # only Python's shutdown is left
