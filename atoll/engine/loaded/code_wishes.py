"""When an engine is asked for the code cache of a version: after its check, and after the first response of an isolate,
when V8 has compiled the functions that are used.

Making a cache takes the isolate some milliseconds, and often the second call comes at once. So after a response the
engine is asked a moment later, between calls.
"""

from __future__ import annotations

from collections.abc import Callable

from atoll.engine.loaded.engine_session import Isolate

SOON_SECONDS = 0.2
BUSY_SECONDS = 2.0  # after so long it is asked even if the isolate is never idle


class CodeWishes:
    def __init__(self, clock: Callable[[], float], *, are_kept: bool) -> None:
        self._clock = clock
        self.are_kept = are_kept
        self._due: dict[Isolate, float] = {}

    def want(self, isolate: Isolate) -> None:
        """Ask after the next response."""
        isolate.wants_code = isolate.watched = True

    def ask(self, isolate: Isolate) -> None:
        if self.are_kept and isolate.version.has_code:
            isolate.session.ask_code(isolate)

    def ask_soon(self, isolate: Isolate) -> None:
        self._due[isolate] = self._clock() + SOON_SECONDS

    def ask_due(self, now: float) -> None:
        for isolate, due in list(self._due.items()):
            if now >= due and (isolate.is_idle or now >= due + BUSY_SECONDS):
                del self._due[isolate]
                self.ask(isolate)

    def before_unload(self, isolate: Isolate) -> None:
        if self._due.pop(isolate, None) is not None:
            self.ask(isolate)
