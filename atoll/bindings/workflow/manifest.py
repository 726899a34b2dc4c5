"""Workflows for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import BindingQuota, CommandGroup, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.durable_object.ops import DurableObjects
    from atoll.bindings.workflow.ops import Workflows

    objects = need("durable_object")
    assert isinstance(objects, DurableObjects)
    return Workflows(services, objects)


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.workflow.admin import WorkflowsApi
    from atoll.bindings.workflow.ops import Workflows

    assert isinstance(binding, Workflows)
    return WorkflowsApi(binding, tools.audit).routes()


MANIFEST = Manifest(
    kind="workflow",
    one_node="Workflows",
    holds=("workflows.db", "SELECT count(*) FROM workflows"),
    make=make,
    cloudflare="atoll.bindings.workflow.cloudflare",
    config="atoll.bindings.workflow.config",
    type_name="Workflow",
    trigger="atoll.bindings.workflow.entries",
    quotas={"workflow_instances": BindingQuota("Instances of Workflows, with those that have ended and are kept.")},
    admin=admin,
    commands={
        "workflows": CommandGroup(
            "atoll.bindings.workflow.cli",
            "Start, watch and steer instances of Workflows.",
            also=("workflow",),
            phrases={r"\bGET /api/workflows lists\b": "`atoll workflows list` lists"},
        ),
    },
)
