"""Atoll: a self-hosted serverless runtime for JavaScript, with a V8 engine in a process of its own.

`from atoll import Atoll` is a whole node inside a Python program: see embed.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atoll.embed import ApiRefused, Atoll, Response, Worker

__version__ = "0.1.0"
__all__ = ["ApiRefused", "Atoll", "Response", "Worker", "__version__"]


def __getattr__(name: str) -> object:
    """The node is imported when it is asked for: `atoll --help` and users of one part should not pay for all."""
    if name in __all__:
        from atoll import embed

        return getattr(embed, name)
    raise AttributeError(f"module 'atoll' has no attribute {name!r}")
