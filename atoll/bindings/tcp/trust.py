"""TLS contexts for workers that bring their own certificate authorities, or check none."""

from __future__ import annotations

import ssl
from functools import lru_cache

from atoll.bindings.tcp.wanted import WantedTls
from atoll.egress.tls_ends import allow_half_close
from atoll.errors import NetworkError


@lru_cache(64)
def make_context(tls: WantedTls) -> ssl.SSLContext:
    """Runs in a thread. The name is not part of a context, but few workers use more than one."""
    context = allow_half_close(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not tls.is_checked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    try:
        context.load_verify_locations(cadata=tls.authorities)
    except (ssl.SSLError, ValueError) as error:
        raise NetworkError(f"the certificates in `ca` cannot be used: {error}") from None
    return context
