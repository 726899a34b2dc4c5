"""Durable Objects for the rest of Atoll."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from atoll.manifests.manifest import BindingQuota, CommandGroup, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def type_of(entry: Mapping[str, Any], script_of: Callable[[str], str | None]) -> str | None:
    """The methods of the class, if the script of its worker is known."""
    script = script_of(entry.get("script_name") or "")
    if script is None:
        return None
    return f"DurableObjectNamespace<InstanceType<typeof import({json.dumps(script)}).{entry['class_name']}>>"


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.durable_object.ops import DurableObjects
    from atoll.bindings.pipe.ops import PipeBinding

    pipes = need("pipe")
    assert isinstance(pipes, PipeBinding)
    return DurableObjects(services, pipes)


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.durable_object.admin import ObjectsApi
    from atoll.bindings.durable_object.ops import DurableObjects

    assert isinstance(binding, DurableObjects)
    return ObjectsApi(binding, tools.audit, binding.console).routes()


MANIFEST = Manifest(
    kind="durable_object",
    shared_file="object_classes",
    stays="Durable Objects",
    holds=("object_namespaces.db", "SELECT count(*) FROM namespaces"),
    make=make,
    cloudflare="atoll.bindings.durable_object.cloudflare",
    config="atoll.bindings.durable_object.config",
    type_name="DurableObjectNamespace",
    type_of=type_of,
    trigger="atoll.bindings.durable_object.entries",
    quotas={"durable_objects": BindingQuota("Durable Objects that store something, in all its namespaces.")},
    admin=admin,
    commands={
        "objects": CommandGroup(
            "atoll.bindings.durable_object.cli",
            "Look into Durable Objects: storage, alarms, sockets, SQL.",
            also=("object",),
            phrases={r"\bGET /api/objects\b": "`atoll objects list`"},
        ),
    },
)
