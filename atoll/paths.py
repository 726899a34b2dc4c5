"""The routes of one host by their paths. Pure: no I/O, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from atoll.splits import Split
from atoll.workers import Version


class PathRule(Struct, frozen=True):
    """A path of one host pattern, and the version it leads to. Without a version, no worker answers.

    With a split, the version depends on the request; `version` is then the primary one.
    """

    path: bytes
    is_prefix: bool
    version: Version | None
    split: Split | None = None

    def matches(self, target: bytes) -> bool:
        return target.startswith(self.path) if self.is_prefix else target == self.path


class PathTable:
    """The routes of one host pattern by their paths: the exact path wins, then the longest prefix.

    A lookup takes one step per distinct prefix length, independent of the number of routes.
    """

    __slots__ = ("_count", "_exact", "_lengths", "_prefixes", "_tenants")

    def __init__(self, rules: Iterable[PathRule] = ()) -> None:
        self._exact: dict[bytes, PathRule] = {}
        self._prefixes: dict[bytes, PathRule] = {}
        self._count: Counter[int] = Counter()  # prefixes by length
        self._lengths: tuple[int, ...] = ()  # the longest first
        self._tenants: Counter[str] = Counter()  # number of rules by tenant
        for rule in rules:
            self.put(rule)

    def find(self, target: bytes) -> PathRule | None:
        rule = self._exact.get(target)
        if rule is not None:
            return rule
        for length in self._lengths:
            rule = self._prefixes.get(target[:length])  # a shorter target stays whole
            if rule is not None:
                return rule
        return None

    def put(self, rule: PathRule) -> None:
        if rule.version is not None:
            self._tenants[rule.version.tenant] += 1
        if not rule.is_prefix:
            self._exact[rule.path] = rule
            return
        self._prefixes[rule.path] = rule
        length = len(rule.path)
        self._count[length] += 1
        if self._count[length] == 1:
            self._lengths = tuple(sorted(self._count, reverse=True))

    def drop(self, rule: PathRule) -> None:
        if rule.version is not None:
            self._tenants[rule.version.tenant] -= 1
        if not rule.is_prefix:
            del self._exact[rule.path]
            return
        del self._prefixes[rule.path]
        length = len(rule.path)
        self._count[length] -= 1
        if not self._count[length]:
            del self._count[length]
            self._lengths = tuple(sorted(self._count, reverse=True))

    def of_tenant(self, tenant: str) -> PathTable:
        """The table with only one tenant's rules. Nearly always this table itself."""
        if not any(count for each, count in self._tenants.items() if each != tenant):
            return self
        rules = (*self._exact.values(), *self._prefixes.values())
        return PathTable(rule for rule in rules if rule.version is None or rule.version.tenant == tenant)

    def __len__(self) -> int:
        return len(self._exact) + len(self._prefixes)

    @property
    def of_all_paths(self) -> PathRule | None:
        """The rule for every path that no other rule matches."""
        return self._prefixes.get(b"/")
