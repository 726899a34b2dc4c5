"""What the instances of workflows ask of the node, for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.workflow.ops import Workflows
    from atoll.bindings.workflow_instance.ops import WorkflowInstances

    workflows = need("workflow")
    assert isinstance(workflows, Workflows)
    return WorkflowInstances(workflows)


MANIFEST = Manifest(kind="workflow_instance", make=make)
