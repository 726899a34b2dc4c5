"""Remembers what the requests of one worker to one server, or to one other worker, have in common.

Most fetches of a worker differ only in their path. The head of the first one is parsed, checked and written in full
(messages.py); for later ones only the path is checked. The egress rules are part of that decision, so a stencil that
was made under other rules is not used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from atoll.bindings.fetch.messages import (
    MAX_URL,
    WantedFetch,
    common_lines,
    framing_of,
    inner_framing,
    inner_lines,
    read_wanted,
)
from atoll.bindings.loops import loop_lines
from atoll.bindings.scope import CallScope
from atoll.bindings.service.target import ServiceTarget as Bound
from atoll.egress.client import HttpClient, Origin
from atoll.egress.connection import ConnectionPool
from atoll.workers import EgressRules, host_label

PATH = re.compile(r"/[!-~]*", re.ASCII)
FIELDS = {"fetch", "method", "url", "head"}  # the meta of a plain fetch
BOUND_FIELDS = FIELDS | {"service"}  # the meta of a plain fetch through a service binding
MAX_REMEMBERED = 1_024
MAX_HEAD = 2_048  # longer heads are rare and would cost memory


class Stencil(NamedTuple):
    method: str
    target: Origin
    authority: bytes
    lines: bytes  # the head without the path before it and the framing after it
    is_ours: bool  # we sent accept-encoding, and decode the body
    pool: ConnectionPool  # the connections it may use
    egress: EgressRules  # the egress rules it was made under
    edition: int

    def request(self, path: bytes, body: bytes) -> bytes:
        return b"".join((self.method.encode(), b" ", path, self.lines, framing_of(self.method, body), b"\r\n", body))


class Stencils:
    def __init__(self, client: HttpClient, base: str) -> None:
        self._client = client
        self._base = base
        self._known: dict[tuple[Any, ...], Stencil] = {}

    def zone(self, scope: CallScope) -> str:
        return f"{host_label(scope.version.worker_name)}.{self._base}"

    def find(self, meta: Mapping[str, Any], scope: CallScope, edition: int) -> tuple[Stencil, bytes] | None:
        """The stencil of a request, and its path; None if the request must be parsed in full."""
        if meta.keys() != FIELDS or scope.others:
            return None
        method, url, head, version = meta["method"], meta["url"], meta["head"], scope.version
        if not (isinstance(url, str) and isinstance(method, str) and isinstance(head, str)) or len(url) > MAX_URL:
            return None
        at = url.find("/", 8)
        if at < 0 or PATH.fullmatch(url, at) is None:
            return None
        known = self._known.get((version.tenant, version.worker_name, scope.hops, method, url[:at], head))
        if known is None or known.egress is not version.egress or known.edition != edition:
            return None
        return known, url[at:].encode()

    def remember(self, meta: Mapping[str, Any], scope: CallScope, edition: int) -> None:
        """Remember a request that was checked in full and whose host is allowed, for later ones like it."""
        if meta.keys() != FIELDS or scope.others:
            return
        head, url, version = meta["head"], meta["url"], scope.version
        at = url.find("/", 8)
        key = (version.tenant, version.worker_name, scope.hops, meta["method"], url[:at], head)
        known = self._known.get(key)
        if known is not None and known.egress is version.egress and known.edition == edition:
            return
        wanted = read_wanted(meta)  # made again: nothing that was added for this one request may stay
        if at < 0 or len(head) + at > MAX_HEAD or url[at:] != wanted.path:
            return
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = Stencil(
            wanted.method,
            wanted.target,
            wanted.authority.encode(),
            common_lines(wanted, loop_lines(scope.hops, ""), self.zone(scope)),
            wanted.is_ours,
            self._client.pool(version, wanted.target),
            version.egress,
            edition,
        )


class InnerStencil(NamedTuple):
    wanted: WantedFetch  # the request it was made from; others differ only in path and URL
    bound: Bound | None  # the service binding; None: found by host
    authority: bytes
    start: bytes  # the head before the URL,
    lines: bytes  # and after it, without the framing
    event: int
    egress: EgressRules  # the egress rules it was made under
    edition: int

    def head(self, url: str, size: int) -> bytes:
        return b"".join((self.start, url.encode("ascii"), self.lines, inner_framing(size)))


class InnerStencils:
    """The same for requests to other workers of the node."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], InnerStencil] = {}

    def find(self, meta: Mapping[str, Any], scope: CallScope, edition: int) -> tuple[InnerStencil, str] | None:
        """The stencil of a request, and its path; None if the request must be parsed in full."""
        keys = meta.keys()
        if (keys != BOUND_FIELDS and keys != FIELDS) or scope.others:
            return None
        url, version = meta["url"], scope.version
        if not isinstance(url, str) or len(url) > MAX_URL:
            return None
        at = url.find("/", 8)
        if at < 0 or PATH.fullmatch(url, at) is None:
            return None
        try:
            known = self._known.get((version.id, meta.get("service"), meta["method"], url[:at], meta["head"]))
        except TypeError:  # no texts
            return None
        if known is None or known.egress is not version.egress or known.edition != edition:
            return None
        return known, url[at:]

    def remember(
        self,
        meta: Mapping[str, Any],
        scope: CallScope,
        wanted: WantedFetch,
        bound: Bound | None,
        zone: str,
        edition: int,
    ) -> None:
        """Remember a request that was checked in full and is allowed, for later ones like it."""
        head, url, version = meta.get("head", ""), wanted.url, scope.version
        at = url.find("/", 8)
        if at < 0 or len(head) + at > MAX_HEAD or url[at:] != wanted.path or scope.others:
            return
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        address, event = bound.line() if bound is not None else (b"", 0)
        self._known[version.id, meta.get("service"), wanted.method, url[:at], head] = InnerStencil(
            wanted, bound, wanted.authority.encode(), f"{wanted.method} ".encode(),
            b"".join((b"\n", address, inner_lines(wanted, zone))), event, version.egress, edition,
        )  # fmt: skip
