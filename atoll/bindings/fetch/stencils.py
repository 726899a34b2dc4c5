"""What the requests of one worker to one server, or to one other worker, have in common, remembered.

Most fetches of a worker differ in nothing but their path. The head of the first one is read, checked and written with
care (messages.py); of those that follow only the path is looked at. Rules of egress are part of what was decided, so a
stencil made under others is not used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from atoll.bindings.fetch.messages import (
    MAX_URL,
    Wanted,
    common_lines,
    framing_of,
    inner_framing,
    inner_lines,
    read_wanted,
)
from atoll.bindings.scope import Scope
from atoll.bindings.service.target import Target as Bound
from atoll.egress.client import HttpClient, Pool, Target
from atoll.workers import EgressRules

PATH = re.compile(r"/[!-~]*", re.ASCII)
FIELDS = {"fetch", "method", "url", "head"}  # of a fetch that wants nothing special
BOUND_FIELDS = FIELDS | {"service"}  # of such a one through a service binding
MAX_REMEMBERED = 1_024
MAX_HEAD = 2_048  # longer ones are rare, and memory is not


class Stencil(NamedTuple):
    method: str
    target: Target
    authority: bytes
    lines: bytes  # the head but for the path before it and the framing behind it
    is_ours: bool  # we asked for an encoding, and undo it
    pool: Pool  # of the connections it may use
    egress: EgressRules  # under which rules
    edition: int

    def request(self, path: bytes, body: bytes) -> bytes:
        return b"".join((self.method.encode(), b" ", path, self.lines, framing_of(self.method, body), b"\r\n", body))


class Stencils:
    def __init__(self, client: HttpClient, base: str) -> None:
        self._client = client
        self._base = base
        self._known: dict[tuple[Any, ...], Stencil] = {}

    def zone(self, scope: Scope) -> str:
        return f"{scope.version.worker_name}.{self._base}"

    def find(self, meta: Mapping[str, Any], scope: Scope, edition: int) -> tuple[Stencil, bytes] | None:
        """The stencil of a request, and its path; None when it is to be read with care."""
        if meta.keys() != FIELDS:
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

    def remember(self, meta: Mapping[str, Any], scope: Scope, edition: int) -> None:
        """A request was read with care, its host is not refused, and the next one like it may be quick."""
        if meta.keys() != FIELDS:
            return
        head, url, version = meta["head"], meta["url"], scope.version
        at = url.find("/", 8)
        key = (version.tenant, version.worker_name, scope.hops, meta["method"], url[:at], head)
        known = self._known.get(key)
        if known is not None and known.egress is version.egress and known.edition == edition:
            return
        wanted = read_wanted(meta)  # anew: nothing that was added for this one request may stay
        if at < 0 or len(head) + at > MAX_HEAD or url[at:] != wanted.path:
            return
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = Stencil(
            wanted.method,
            wanted.target,
            wanted.authority.encode(),
            common_lines(wanted, scope.hops, self.zone(scope)),
            wanted.is_ours,
            self._client.pool(version, wanted.target),
            version.egress,
            edition,
        )


class InnerStencil(NamedTuple):
    wanted: Wanted  # by the first of them; only path and URL differ
    bound: Bound | None  # through which service binding; None: by its host
    authority: bytes
    start: bytes  # what comes before the URL,
    lines: bytes  # and what comes behind it, but for the framing
    event: int
    egress: EgressRules  # under which rules
    edition: int

    def head(self, url: str, size: int) -> bytes:
        return b"".join((self.start, url.encode("ascii"), self.lines, inner_framing(size)))


class InnerStencils:
    """The same for requests to other workers of the node."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], InnerStencil] = {}

    def find(self, meta: Mapping[str, Any], scope: Scope, edition: int) -> tuple[InnerStencil, str] | None:
        """The stencil of a request, and its path; None when it is to be read with care."""
        keys = meta.keys()
        if keys != BOUND_FIELDS and keys != FIELDS:
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
        self, meta: Mapping[str, Any], scope: Scope, wanted: Wanted, bound: Bound | None, zone: str, edition: int
    ) -> None:
        """A request was read with care and may be made, and the next one like it may be quick."""
        head, url, version = meta.get("head", ""), wanted.url, scope.version
        at = url.find("/", 8)
        if at < 0 or len(head) + at > MAX_HEAD or url[at:] != wanted.path:
            return
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        address, event = bound.line() if bound is not None else (b"", 0)
        self._known[version.id, meta.get("service"), wanted.method, url[:at], head] = InnerStencil(
            wanted, bound, wanted.authority.encode(), f"{wanted.method} ".encode(),
            b"".join((b"\n", address, inner_lines(wanted, zone))), event, version.egress, edition,
        )  # fmt: skip
