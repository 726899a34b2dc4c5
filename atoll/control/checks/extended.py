"""Shapes of the API with a field for each trigger or quota in the bindings' manifests.

@with_fields((name, int | None, None) for name in quotas())
class Quotas(msgspec.Struct): …
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from atoll.manifests.every import triggers
from atoll.workers import Version

Shape = TypeVar("Shape", bound=type[msgspec.Struct])
Extra = tuple[str, Any] | tuple[str, Any, Any]  # name, type and default, as defstruct takes them


def with_fields(extra: Iterable[Extra]) -> Callable[[Shape], Shape]:
    """Append fields to a shape. Its name, module and options stay."""

    def extend(shape: Shape) -> Shape:
        config = shape.__struct_config__
        return msgspec.defstruct(  # type: ignore[return-value]
            shape.__name__,
            list(extra),
            bases=(shape,),
            module=shape.__module__,
            namespace={"__doc__": shape.__doc__},
            frozen=config.frozen,
            omit_defaults=config.omit_defaults,
            forbid_unknown_fields=config.forbid_unknown_fields,
        )

    return extend


def with_entries(shape: Shape) -> Shape:
    """Append the entries of every trigger to an answer: see `entries_of`."""
    return with_fields((name, list_of(trigger.entry)) for name, trigger in triggers().items())(shape)


def list_of(entry: Any) -> Any:
    """The type of a list of these entries."""
    return list[entry]


def entries_of(version: Version) -> dict[str, tuple[Any, ...]]:
    """The entries of every trigger, by field; empty ones included."""
    return {name: version.triggers.get(name, ()) for name in triggers()}
