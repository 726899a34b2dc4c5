"""Which worker answers a request: host and path -> Version. Pure: no I/O, no clock.

Three things lead to a worker, the first that matches wins:

    routes          `host/path` patterns a worker asked for: `api.example.com/v1/*`, `*.example.com/*`, `*example.com/*`
    custom domains  a host alone, `shop.example.com`: every path of it that no route takes
    its own name    `<name>.<base domain>`; no wildcard route takes it away

Among routes the more specific host wins, then the longer path, then the exact path before the one with `*`. Hosts are
compared in lower case without port and trailing dot; paths by their bytes, query included, after dot segments are
resolved (a worker sees the resolved URL, so the route must be chosen by it too). A scheme in a pattern is accepted and
means nothing: TLS ends before Atoll.

`find` is on the hot path. What a Host header leads to is worked out once and remembered by its raw bytes; every change
of the table forgets all of that at once, and the event loop is the only thread, so a request sees the old table or the
new one and never a mix.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct, field

from atoll.workers import Version

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
    """A parsed route. Two texts that mean the same give equal Patterns."""

    host: str  # without the star
    wildcard: str  # "" exact host, "*." subhosts only, "*" the host and its subhosts (with host "": every host)
    path: str | None  # None: a custom domain
    is_prefix: bool = False

    def __str__(self) -> str:
        return self.wildcard + self.host + (self.path or "") + ("*" if self.is_prefix else "")


def parse_pattern(text: str) -> Pattern:
    """`[scheme://]host[/path]`; `*` only as the first character of the host and the last of the path."""
    rest = text.strip()
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
        raise BadPattern(f"the route `{text}` has a character in its path that no URL has: percent-encode it")
    return Pattern(host, wildcard, path, is_prefix)


def host_name(host: bytes) -> bytes | None:
    """The name in a Host header, in lower case without port and trailing dot; None when it is no valid host."""
    match = HOST.fullmatch(host.lower())
    if match is None or int(match[2] or 0) > 65535:
        return None
    name = match[1]
    try:
        if name.startswith(b"["):
            ipaddress.IPv6Address(name[1:-1].decode())
        elif NUMBER.fullmatch(name.removesuffix(b".").rpartition(b".")[2]):  # URL parsers take it for an address
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


class Rule(Struct, frozen=True):
    """A path of one host pattern, and where it leads. No version: requests that match are nobody's."""

    path: bytes
    is_prefix: bool
    version: Version | None

    def matches(self, target: bytes) -> bool:
        return target.startswith(self.path) if self.is_prefix else target == self.path


class Entry(Struct):
    """What one worker put into the table."""

    version: Version | None
    patterns: tuple[Pattern, ...] = field(default=())


# What a host leads to: the version of every path that no rule takes, and the rules in the order to try them.
Outcome: TypeAlias = tuple[Version | None, tuple[Rule, ...]]


def host_keys(host: str) -> list[tuple[str, str]]:
    """What a host matches, as (wildcard, host) of patterns: the most specific first."""
    keys = [("", host), ("*", host)]
    suffix = host
    while suffix:
        suffix = suffix.partition(".")[2]
        keys += [("*.", suffix), ("*", suffix)]
    return keys


def hosts_meet(wildcard: str, host: str, other_wildcard: str, other_host: str) -> bool:
    """Whether some host matches both of two host patterns."""
    if host == other_host:
        return wildcard == other_wildcard or "*" in (wildcard, other_wildcard)
    if not other_host or host.endswith("." + other_host):
        return other_wildcard != ""
    return wildcard != "" and (not host or other_host.endswith("." + host))


class Router:
    """The table of one node. `put` and `drop` change it between two requests, never during one."""

    def __init__(self, base_domain: str = "localhost", control_hosts: Iterable[str] = ()) -> None:
        self.base = base_domain.lower().strip(".")
        self.control = {h.lower().removesuffix(".").encode() for h in (*LOCAL_HOSTS, *control_hosts)}
        self.entries: dict[str, Entry] = {}
        self.owners: dict[Pattern, str] = {}
        self.by_host: dict[tuple[str, str], dict[Pattern, Rule]] = {}  # (wildcard, host) -> its rules
        self.own: dict[bytes, Outcome] = {}  # by the host a worker has by its name, ready for its first request
        self.remembered: dict[bytes, Outcome] = {}  # by raw Host header

    def find(self, host: bytes, target: bytes) -> Version | None:
        """The version that answers, or None. `host` is a Host header; `target` is path and query."""
        outcome = self.remembered.get(host)
        if outcome is None:
            outcome = self.remember(host)
        version, rules = outcome
        if rules:
            target = resolved(target)
            for rule in rules:
                if rule.matches(target):
                    return rule.version
        return version

    def is_control(self, host: bytes) -> bool:
        """Does the control API answer on this host? Workers never do there."""
        name = host_name(host)
        return name is not None and name in self.control

    def put(self, worker_name: str, version: Version | None, patterns: Iterable[str] = ()) -> None:
        """Let a worker answer with `version` on its own host and on `patterns`, instead of what it had before.

        Without a version the patterns exclude: what they match is answered by nobody. Raises BadPattern or RouteTaken,
        and then nothing has changed.
        """
        parsed = tuple(dict.fromkeys(map(parse_pattern, patterns)))
        for pattern, owner in self.conflicts(worker_name, parsed):
            raise RouteTaken(str(pattern), owner)
        self.remove(worker_name)
        self.entries[worker_name] = Entry(version, parsed)
        for pattern in parsed:
            self.owners[pattern] = worker_name
            rule = Rule((pattern.path or "/").encode(), pattern.is_prefix or pattern.path is None, version)
            self.by_host.setdefault((pattern.wildcard, pattern.host), {})[pattern] = rule
        if version is not None:
            host = f"{worker_name}.{self.base}".encode()
            self.own[host] = self.work_out(host)
        self.remembered.clear()

    def drop(self, worker_name: str) -> None:
        self.remove(worker_name)
        self.remembered.clear()

    def conflicts(self, worker_name: str, patterns: Iterable[Pattern | str]) -> Iterator[tuple[Pattern, str]]:
        """Those of `patterns` that the worker may not have and those of others on its own host, each with its owner."""
        for taken in self.by_host.get(("", f"{worker_name}.{self.base}"), {}):
            if self.owners[taken] != worker_name:
                yield taken, self.owners[taken]
        for pattern in patterns:
            parsed = parse_pattern(pattern) if isinstance(pattern, str) else pattern
            owner = self.owners.get(parsed, worker_name)
            if not parsed.wildcard and parsed.host.encode() in self.control:
                owner = "(the control API)"
            name = parsed.host.removesuffix("." + self.base)
            if not parsed.wildcard and name != parsed.host and name in self.entries:
                owner = name  # the host every worker has by its name is its own
            if owner != worker_name:
                yield parsed, owner

    def tenant_of(self, worker_name: str) -> str | None:
        """Whose a worker in the table is."""
        entry = self.entries.get(worker_name)
        return entry.version.tenant if entry is not None and entry.version is not None else None

    def meeting(self, pattern: Pattern) -> set[str]:
        """The workers that have a pattern on some host of this one, whatever the paths."""
        keys: Iterable[tuple[str, str]]
        if pattern.wildcard:
            keys = [key for key in self.by_host if hosts_meet(pattern.wildcard, pattern.host, *key)]
        else:
            keys = [key for key in host_keys(pattern.host) if key in self.by_host]
        return {self.owners[each] for key in keys for each in self.by_host[key]}

    def remove(self, worker_name: str) -> None:
        entry = self.entries.pop(worker_name, None)
        self.own.pop(f"{worker_name}.{self.base}".encode(), None)
        for pattern in entry.patterns if entry else ():
            del self.owners[pattern]
            rules = self.by_host[pattern.wildcard, pattern.host]
            del rules[pattern]
            if not rules:
                del self.by_host[pattern.wildcard, pattern.host]

    def remember(self, host: bytes) -> Outcome:
        outcome = self.own.get(host)
        if outcome is None:
            outcome = self.work_out(host_name(host))
        if len(self.remembered) >= MAX_REMEMBERED_HOSTS:
            self.remembered.clear()
        self.remembered[host] = outcome
        return outcome

    def work_out(self, name: bytes | None) -> Outcome:
        return (None, ()) if name is None or name in self.control else self.outcome(name.decode("ascii"))

    def outcome(self, host: str) -> Outcome:
        """Rules for a host in the order to try them, cut after the first that takes every path."""
        rules: list[Rule] = []
        for rule in self.candidates(host):
            if rule.is_prefix and rule.path == b"/":
                return rule.version, tuple(rules)
            rules.append(rule)
        return None, tuple(rules)

    def candidates(self, host: str) -> Iterator[Rule]:
        yield from self.rules_of("", host)
        name = host.removesuffix("." + self.base)
        own = self.entries.get(name) if name != host else None
        if own is not None and own.version is not None:
            yield Rule(b"/", True, own.version)
        for wildcard, suffix in host_keys(host)[1:]:
            yield from self.rules_of(wildcard, suffix)
        custom = self.by_host.get(("", host), {})
        yield from (rule for pattern, rule in custom.items() if pattern.path is None)

    def rules_of(self, wildcard: str, host: str) -> list[Rule]:
        routes = [rule for pattern, rule in self.by_host.get((wildcard, host), {}).items() if pattern.path is not None]
        return sorted(routes, key=lambda rule: (-len(rule.path), rule.is_prefix))
