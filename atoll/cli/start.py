"""Where `atoll` begins."""

from __future__ import annotations

import signal

from atoll.cli.interrupt import ending_at_once


def start() -> None:
    with ending_at_once():
        from atoll.cli.main import main
    try:
        main()
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # what is left is Python's own end
