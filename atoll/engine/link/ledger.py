"""Which calls have begun and which workers run, in memory that is shared with an engine and outlives it.

There is one byte per call id: Python clears it before it sends the call, the engine sets it before the handler runs.
When an engine dies, a call whose byte is clear never began and may be sent to another engine. Without the ledger every
call to a loaded version would have to fail. The engine is not trusted: all it can do with the page is to have its own
calls sent again, because seals keep it from shrinking the memory.

After these bytes comes a number per thread of the engine: the load id of the worker whose code it runs. When an engine
dies, one of these workers is the cause.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from typing import Final

from atoll.wire.generated import LEDGER, LEDGER_THREADS

SIZE: Final = LEDGER + 4 * LEDGER_THREADS


class Ledger:
    def __init__(self) -> None:
        self.fd = os.memfd_create("atoll-ledger", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, SIZE)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._page = mmap.mmap(self.fd, SIZE)

    def clear(self, call: int) -> None:
        """The call is about to be sent."""
        if call < LEDGER:
            self._page[call] = 0

    def begun(self, call: int) -> bool:
        """Whether the handler of the call may have run."""
        return call >= LEDGER or self._page[call] != 0

    def running(self) -> set[int]:
        """The load ids of the workers whose code was running at the last write: the suspects of a crash."""
        return set(struct.unpack_from(f"<{LEDGER_THREADS}I", self._page, LEDGER)) - {0}

    def close(self) -> None:
        self._page.close()
        os.close(self.fd)
