"""The two ends of a TLS connection.

A worker may end its direction and go on reading. OpenSSL can do that, but Python's SSLObject then raises an error for
the peer's own end, and event loops drop what was read together with it.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Any


class HalfClosableTls(ssl.SSLObject):
    def read(self, len: int = 1024, buffer: Any = None) -> Any:
        try:
            return super().read(len, buffer)
        except ssl.SSLZeroReturnError:  # the peer has ended its direction, after us
            return b"" if buffer is None else 0


def allow_half_close(context: ssl.SSLContext) -> ssl.SSLContext:
    context.sslobject_class = HalfClosableTls
    return context


def send_end(transport: asyncio.Transport) -> None:
    """Tell the peer that nothing follows. Not while received bytes wait to be decrypted: they would be lost."""
    tls = transport.get_extra_info("ssl_object")
    if tls is not None:
        with suppress(ssl.SSLError):
            tls.unwrap()  # puts the notice into the buffer of what is sent, and would then wait for the peer's
        transport.writelines([])  # sends the buffer
