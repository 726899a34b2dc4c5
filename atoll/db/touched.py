"""Which rows a change of another node touched, for what is kept of them in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

Key: TypeAlias = tuple[str, object]  # table, first column of the primary key


class Touched(NamedTuple):
    """The rows that a change touched, and for tables whose rows belong to another, the value of their second column."""

    seq: int
    keys: frozenset[Key]
    seconds: frozenset[Key]
    rows: frozenset[tuple[object, ...]] = frozenset()  # table and whole primary key; only of databases of bindings


Listener: TypeAlias = "Callable[[Touched], Awaitable[None]]"
