"""Atoll: a self-hosted serverless runtime for JavaScript, with a V8 engine in a process of its own.

`from atoll import Atoll` is a whole node inside a Python program: see embed.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atoll.bindings.base import OpCall, Reply, op
    from atoll.bindings.host import HostBinding
    from atoll.embed import ApiRefused, Atoll, Response, Worker

__version__ = "0.1.0"
__all__ = ["ApiRefused", "Atoll", "HostBinding", "OpCall", "Reply", "Response", "Worker", "__version__", "op"]


def __getattr__(name: str) -> object:
    """Imports the node on first use, so that `atoll --help` and users of one module start fast."""
    if name in ("OpCall", "Reply", "op"):
        from atoll.bindings import base

        return getattr(base, name)
    if name == "HostBinding":
        from atoll.bindings.host import HostBinding

        return HostBinding
    if name in __all__:
        from atoll import embed

        return getattr(embed, name)
    raise AttributeError(f"module 'atoll' has no attribute {name!r}")
