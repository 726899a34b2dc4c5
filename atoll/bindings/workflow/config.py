"""`workflows` of a project's config: each entry is a binding, and the workflow itself unless another worker has it."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import ConfigField, FieldVerdict, FindingLevel, Reading, Subfield, given


class ConfigStepLimits(Struct):
    steps: int | None = None


class ConfigRetention(Struct):
    success_retention: str | int | None = None
    error_retention: str | int | None = None


class ConfigWorkflow(Struct):
    binding: str
    name: str
    class_name: str
    script_name: str = ""
    limits: ConfigStepLimits | None = None
    default_retention: ConfigRetention | None = None


def read(workflows: list[ConfigWorkflow], reading: Reading) -> None:
    declared: set[str] = set()
    for each in workflows:
        own = each.script_name in ("", reading.project)
        reading.bind("workflow", each.binding, workflow=each.name, script_name="" if own else each.script_name)
        if not own or each.name in declared:
            continue
        declared.add(each.name)
        kept = each.default_retention or ConfigRetention()
        entry = {
            "name": each.name,
            "class_name": each.class_name,
            "steps": each.limits.steps if each.limits is not None else None,
            "success_retention": kept.success_retention,
            "error_retention": kept.error_retention,
        }
        reading.trigger("workflows", given(entry))


FIELDS = (
    ConfigField(
        name="workflows",
        shape=list[ConfigWorkflow],
        read=read,
        subfields={
            "workflows[].jurisdiction": Subfield("the data is on this node"),
            "workflows[].concurrency": Subfield(
                "50 instances of a tenant run at the same time, the others wait", level=FindingLevel.WARNING
            ),
            "workflows[].schedules": Subfield(
                "Atoll does not start instances on a schedule: create them in a cron trigger",
                verdict=FieldVerdict.MISSING,
                level=FindingLevel.ERROR,
            ),
        },
    ),
)
