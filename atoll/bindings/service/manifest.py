"""Service bindings for the rest of Atoll."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from atoll.manifests.manifest import Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def type_of(entry: Mapping[str, Any], script_of: Callable[[str], str | None]) -> str | None:
    """The methods of the other worker, if its script is known."""
    script = script_of(entry["service"])
    if script is None:
        return None
    return f"ServiceOf<typeof import({json.dumps(script)}).{entry.get('entrypoint') or 'default'}>"


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.pipe.ops import PipeBinding
    from atoll.bindings.service.ops import Service

    pipes = need("pipe")
    assert isinstance(pipes, PipeBinding)
    return Service(services, pipes)


MANIFEST = Manifest(
    kind="service",
    make=make,
    cloudflare="atoll.bindings.service.cloudflare",
    config="atoll.bindings.service.config",
    type_name="Fetcher",
    type_of=type_of,
    names_worker=lambda entry: entry["service"],
)
