"""Finds the worker for a request: host and path -> Version. Pure: no I/O, no clock.

Three things lead to a worker. The first that matches wins:

    routes          `host/path` patterns of a worker: `api.example.com/v1/*`, `*.example.com/*`, `*example.com/*`
    custom domains  a host alone, `shop.example.com`: every path of it that no route matches
    its own name    `<name>.<base domain>`, with `-` for `_`; a wildcard route cannot take it over, and a route of
                    another tenant cannot take a host below it

Among routes the more specific host wins, then the longer path, then the exact path before the one with `*`. Hosts are
compared in lower case without port and trailing dot; paths by their bytes, query included, after dot segments are
resolved (a worker sees the resolved URL, so the route must be chosen by it too). A scheme in a pattern is accepted and
ignored.

`find` is on the hot path. The result for a Host header is cached by its raw bytes. Every change of the table clears the
cache, and the event loop is the only thread, so a request sees either the old table or the new one.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct, field

from atoll.claims import Claim, Claims, claim_of, unit_of
from atoll.paths import PathRule, PathTable
from atoll.splits import Split
from atoll.workers import Version, host_label

MAX_REMEMBERED_HOSTS = 4096
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")

HOST = re.compile(rb"([a-z0-9_](?!.*\.\.)[a-z0-9_\-.]{0,253}|\[[0-9a-f:.]{2,45}\])(?::([0-9]{0,5}))?")
NUMBER = re.compile(rb"[0-9]+|0x[0-9a-f]*")
PATTERN_HOST = re.compile(r"[a-z0-9_]([a-z0-9_\-.]*[a-z0-9_])?|\[[0-9a-f:.]+\]")
PATTERN_PATH = re.compile(r"/[!-~]*")
DOTS = re.compile(rb"[/\\](?:\.|%2[eE]){1,2}(?:[/\\?]|\Z)|\\")


class BadPattern(ValueError):
    """A route pattern that cannot be used; the text says why."""


class RouteTaken(ValueError):
    """A pattern that another worker holds."""

    def __init__(self, pattern: str, owner: str) -> None:
        super().__init__(f"the route `{pattern}` belongs to the worker `{owner}`: remove it there or choose another")
        self.pattern = pattern
        self.owner = owner


class Pattern(Struct, frozen=True):
    """A parsed route. Two spellings of the same route give equal Patterns."""

    host: str  # without the star
    wildcard: str  # "" exact host, "*." subhosts only, "*" the host and its subhosts (with host "": every host)
    path: str | None  # None: a custom domain
    is_prefix: bool = False

    def __str__(self) -> str:
        return self.wildcard + self.host + (self.path or "") + ("*" if self.is_prefix else "")


def parse_pattern(text: str) -> Pattern:
    """`[scheme://]host[/path]`; `*` only as the first character of the host and the last of the path."""
    rest = text.strip()
    if not rest.isascii():
        raise BadPattern(f"the route `{text}` is not ASCII: write its host in Punycode (xn--…) and its path with %")
    scheme, found, after = rest.partition("://")
    if found:
        if scheme.lower() not in ("http", "https"):
            raise BadPattern(f"the route `{text}` has the scheme `{scheme}`: use http, https or none")
        rest = after
    host, slash, path = rest.partition("/")
    host = host.lower().removesuffix(".")
    wildcard = "*." if host.startswith("*.") else "*" if host.startswith("*") else ""
    host = host[len(wildcard) :]
    if "*" in host:
        raise BadPattern(f"the route `{text}` has a `*` inside its host: it may only be the first character")
    if ":" in host and not host.startswith("["):
        raise BadPattern(f"the route `{text}` names a port: routes match any port, leave it out")
    if host.startswith("[") and host.endswith("]"):
        host = _canonical(host)
    is_any = wildcard == "*" and not host
    if ".." in host or not (is_any or PATTERN_HOST.fullmatch(host)):
        raise BadPattern(f"the route `{text}` has no valid host name before its path")
    if not slash:
        if wildcard:
            raise BadPattern(f"the route `{text}` needs a path after its wildcard host: `{rest}/*` takes every path")
        return Pattern(host, "", None)
    path = slash + path
    is_prefix = path.endswith("*")
    if is_prefix:
        path = path[:-1]
    if "*" in path:
        raise BadPattern(f"the route `{text}` has a `*` inside its path: it may only be the last character")
    if "?" in path or "#" in path:
        raise BadPattern(f"the route `{text}` has a query or fragment: end its path with `*` to take every query")
    if not PATTERN_PATH.fullmatch(path):
        raise BadPattern(f"the route `{text}` has a character in its path that URLs cannot contain: percent-encode it")
    return Pattern(host, wildcard, path, is_prefix)


def _canonical(host: str) -> str:
    """An IPv6 address in its canonical form. Anything else is returned as it is, for the check that follows."""
    try:
        return f"[{ipaddress.IPv6Address(host[1:-1])}]"
    except ValueError:
        return host


def host_name(host: bytes) -> bytes | None:
    """The name in a Host header, in lower case without port and trailing dot; None if it is not a valid host."""
    match = HOST.fullmatch(host.lower())
    if match is None or int(match[2] or 0) > 65535:
        return None
    name = match[1]
    try:
        if name.startswith(b"["):
            return f"[{ipaddress.IPv6Address(name[1:-1].decode())}]".encode()
        if NUMBER.fullmatch(name.removesuffix(b".").rpartition(b".")[2]):  # URL parsers read it as an IPv4 address
            ipaddress.IPv4Address(name.removesuffix(b".").decode())
    except ValueError:
        return None
    return name.removesuffix(b".")


def resolved(target: bytes) -> bytes:
    """Path and query with `.` and `..` segments resolved and backslashes turned, as URL parsers do."""
    if DOTS.search(target) is None:
        return target
    path, mark, query = target.partition(b"?")
    segments: list[bytes] = []
    parts = path.replace(b"\\", b"/").split(b"/")[1:]
    for i, part in enumerate(parts):
        plain = part.lower().replace(b"%2e", b".")
        last = i == len(parts) - 1
        if plain == b"..":
            del segments[-1:]
        if plain not in (b".", b".."):
            segments.append(part)
        elif last:
            segments.append(b"")
    return b"/" + b"/".join(segments) + mark + query


class RouteEntry(Struct):
    """The entries of one worker in the table."""

    version: Version | None  # the primary one
    patterns: tuple[Pattern, ...] = field(default=())
    claims: tuple[Claim, ...] = field(default=())
    split: Split | None = None  # if several versions have traffic


# The result for a host: the version for paths that no rule matches, and the tables of rules in the order to try them.
Outcome: TypeAlias = tuple[Version | None, tuple[PathTable, ...]]


def host_keys(host: str) -> list[tuple[str, str]]:
    """The patterns that a host matches, as (wildcard, host), the most specific first."""
    keys = [("", host), ("*", host)]
    suffix = host
    while suffix:
        suffix = suffix.partition(".")[2]
        keys += [("*.", suffix), ("*", suffix)]
    return keys


class Router:
    """The table of one node. `put` and `drop` change it between two requests, never during one."""

    def __init__(self, base_domain: str = "localhost", control_hosts: Iterable[str] = ()) -> None:
        self.base = base_domain.lower().strip(".")
        own = [host.lower().removesuffix(".").encode() for host in (*LOCAL_HOSTS, *control_hosts)]
        self.control = {host for host in own if not host.startswith(b"*.")}
        self.control_domains = {host[2:] for host in own if host.startswith(b"*.")}  # for hosts directly below them
        self.control_names = tuple(name.decode() for name in self.control)
        self.entries: dict[str, RouteEntry] = {}
        self.labels: dict[str, str] = {}  # label of a worker's own host -> name
        self.owners: dict[Pattern, str] = {}
        self.claims = Claims(self.base)  # which tenant owns which hosts
        self.by_host: dict[tuple[str, str], dict[Pattern, PathRule]] = {}  # (wildcard, host) -> its rules
        self.paths: dict[tuple[str, str], PathTable] = {}  # the rules by their paths, without custom domains
        self.own: dict[bytes, Outcome] = {}  # by the worker's own host, prepared for its first request
        self.remembered: dict[bytes, Outcome] = {}  # by raw Host header
        self.preview: Callable[[str], Version | None] = lambda label: None  # deploy/previews.py

    def find(self, host: bytes, target: bytes, head: bytes = b"") -> Version | None:
        """The version that answers, or None. `host` is a Host header; `target` is path and query.

        This is the one place that chooses the version of a request. `head` is read only if the traffic of the worker
        is split: a client may pin its version by a header (splits.py).
        """
        outcome = self.remembered.get(host)
        if outcome is None:
            outcome = self.remember(host)
        version, tables = outcome
        if tables:
            target = resolved(target)
            for table in tables:
                rule = table.find(target)
                if rule is not None:
                    return rule.version if rule.split is None else rule.split.choose(head)
        return version

    def is_control(self, host: bytes) -> bool:
        """Does the control API answer on this host? Workers never do there."""
        name = host_name(host)
        return name is not None and self.is_control_name(name)

    def is_control_name(self, name: bytes) -> bool:
        return name in self.control or name.partition(b".")[2] in self.control_domains

    def names(self, host: bytes) -> bool:
        """Does a worker have exactly this host, as its own or in a route? Previews and wildcards do not count."""
        name = (host_name(host) or b"").decode("ascii")
        if not name or self.is_control_name(name.encode()):
            return False
        own = self.own.get(name.encode())
        return own is not None or any(rule.version is not None for rule in self.by_host.get(("", name), {}).values())

    def put(
        self, worker_name: str, version: Version | None, patterns: Iterable[str] = (), split: Split | None = None
    ) -> None:
        """Route a worker's own host and `patterns` to `version`, or by `split`, replacing its earlier entries.

        Without a version the patterns exclude: no worker answers requests that match them. If it raises BadPattern or
        RouteTaken, nothing has changed.
        """
        parsed = tuple(dict.fromkeys(map(parse_pattern, patterns)))
        for pattern, owner in self.conflicts(worker_name, parsed):
            raise RouteTaken(str(pattern), owner)
        self.remove(worker_name)
        claims = self.claims_of(worker_name, parsed) if version is not None else ()
        self.entries[worker_name] = RouteEntry(version, parsed, claims, split)
        self.labels[host_label(worker_name)] = worker_name
        for claim in claims:
            self.claims.put(claim, version.tenant if version is not None else "")
        for pattern in parsed:
            self.owners[pattern] = worker_name
            rule = PathRule((pattern.path or "/").encode(), pattern.is_prefix or pattern.path is None, version, split)
            key = (pattern.wildcard, pattern.host)
            self.by_host.setdefault(key, {})[pattern] = rule
            if pattern.path is not None:
                self.paths.setdefault(key, PathTable()).put(rule)
        if version is not None:
            host = self.own_host(worker_name).encode()
            self.own[host] = self.work_out(host)
        self.remembered.clear()

    def drop(self, worker_name: str) -> None:
        self.remove(worker_name)
        self.remembered.clear()

    def conflicts(self, worker_name: str, patterns: Iterable[Pattern | str]) -> Iterator[tuple[Pattern, str]]:
        """Patterns that the worker may not have, and patterns of others on its own host, each with its owner."""
        own = self.own_host(worker_name)
        holder = self.labels.get(host_label(worker_name), worker_name)
        if holder != worker_name:
            yield Pattern(own, "", None), holder
        for taken in self.by_host.get(("", own), {}):
            if self.owners[taken] != worker_name:
                yield taken, self.owners[taken]
        for pattern in patterns:
            parsed = parse_pattern(pattern) if isinstance(pattern, str) else pattern
            owner = self.owners.get(parsed, worker_name)
            if not parsed.wildcard and self.is_control_name(parsed.host.encode()):
                owner = "(the control API)"
            name = parsed.host.removesuffix("." + self.base)
            if not parsed.wildcard and name != parsed.host and name in self.labels:
                owner = self.labels[name]  # a worker's own host always belongs to it
            if owner != worker_name:
                yield parsed, owner

    def tenant_of(self, worker_name: str) -> str | None:
        """The tenant of a worker in the table."""
        entry = self.entries.get(worker_name)
        return entry.version.tenant if entry is not None and entry.version is not None else None

    def own_host(self, worker_name: str) -> str:
        """A worker's own host."""
        return f"{host_label(worker_name)}.{self.base}"

    def has_lost_host(self, worker_name: str) -> bool:
        """Whether the node itself answers on the worker's own host."""
        return self.is_control_name(self.own_host(worker_name).encode())

    def with_label(self, label: str) -> RouteEntry | None:
        """The worker whose own host has this label."""
        return self.entries.get(self.labels.get(label, ""))

    def claims_of(self, worker_name: str, patterns: Iterable[Pattern | str]) -> tuple[Claim, ...]:
        """The worker's own host and the hosts of these patterns, each once."""
        found = [("*", self.own_host(worker_name))]
        for each in patterns:
            pattern = parse_pattern(each) if isinstance(each, str) else each
            found.append(claim_of(pattern.wildcard, pattern.host, self.base))
        return tuple(dict.fromkeys(found))

    def claims_by(self, worker_name: str) -> tuple[Claim, ...]:
        """The current hosts of a worker."""
        entry = self.entries.get(worker_name)
        return entry.claims if entry is not None else ()

    def remove(self, worker_name: str) -> None:
        entry = self.entries.pop(worker_name, None)
        self.own.pop(self.own_host(worker_name).encode(), None)
        if self.labels.get(host_label(worker_name)) == worker_name:
            del self.labels[host_label(worker_name)]
        for pattern in entry.patterns if entry else ():
            del self.owners[pattern]
            key = (pattern.wildcard, pattern.host)
            rule = self.by_host[key].pop(pattern)
            if not self.by_host[key]:
                del self.by_host[key]
            if pattern.path is not None:
                self.paths[key].drop(rule)
                if not self.paths[key]:
                    del self.paths[key]
        if entry is not None and entry.version is not None:
            for claim in entry.claims:
                self.claims.drop(claim, entry.version.tenant)

    def remember(self, host: bytes) -> Outcome:
        outcome = self.own.get(host)
        if outcome is None:
            name = host_name(host)
            version = self._previewed(name) if name is not None else None
            if version is not None:
                return version, ()  # not remembered: there may be many, and they are rarely called
            outcome = self.work_out(name)
        if len(self.remembered) >= MAX_REMEMBERED_HOSTS:
            self.remembered.clear()
        self.remembered[host] = outcome
        return outcome

    def _previewed(self, name: bytes) -> Version | None:
        """The version that a host previews. Only a host directly below the base domain that nothing else has."""
        host = name.decode("ascii")
        label = host.removesuffix("." + self.base)
        if label == host or "." in label or label in self.labels or ("", host) in self.by_host:
            return None
        return self.preview(label)

    def forget(self) -> None:
        """Find every host anew: previews have changed."""
        self.remembered.clear()

    def work_out(self, name: bytes | None) -> Outcome:
        return (None, ()) if name is None or self.is_control_name(name) else self.outcome(name.decode("ascii"))

    def outcome(self, host: str) -> Outcome:
        """The tables of a host in the order to try them, up to the first that matches every path."""
        owner = self.with_label(unit_of(host, self.base))  # the tenant of this host and of all beside and below it
        tenant = owner.version.tenant if owner is not None and owner.version is not None else None
        tables: list[PathTable] = []
        for each in self.matching(host):
            table = each if tenant is None else each.of_tenant(tenant)
            last = table.of_all_paths
            if last is not None and len(table) == 1 and last.split is None:
                return last.version, tuple(tables)
            if table:
                tables.append(table)
            if last is not None:
                break
        return None, tuple(tables)

    def matching(self, host: str) -> Iterator[PathTable]:
        if ("", host) in self.paths:
            yield self.paths["", host]
        name = host.removesuffix("." + self.base)
        own = self.with_label(name) if name != host else None
        if own is not None and own.version is not None:
            yield PathTable([PathRule(b"/", True, own.version, own.split)])
        for key in host_keys(host)[1:]:
            if key in self.paths:
                yield self.paths[key]
        custom = self.by_host.get(("", host), {}).get(Pattern(host, "", None))
        if custom is not None:
            yield PathTable([custom])

    def rules_of(self, wildcard: str, host: str) -> list[PathRule]:
        routes = [rule for pattern, rule in self.by_host.get((wildcard, host), {}).items() if pattern.path is not None]
        return sorted(routes, key=lambda rule: (-len(rule.path), rule.is_prefix))
