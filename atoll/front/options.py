"""What the node decides about its front."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from atoll.errors import Failure
from atoll.front.bounds import Bounds
from atoll.front.pages import Detail
from atoll.front.peer import Proxies
from atoll.holdings import Holdings
from atoll.pacer import Pacer

Explain: TypeAlias = Callable[[str, Failure], Failure]  # by id of the version


@dataclass(frozen=True)
class FrontOptions:
    bounds: Bounds = field(default_factory=Bounds)
    drain_seconds: float = 30.0
    detail: Detail = Detail.PUBLIC  # how much error pages say
    explain: Explain | None = None  # maps stacks in error pages to source positions
    proxies: Proxies = field(default_factory=Proxies)  # proxies whose headers about clients are believed
    pacer: Pacer = field(default_factory=Pacer)
    holdings: Holdings = field(default_factory=Holdings)
