"""How a field of a project's config becomes entries of a deploy.

A binding declares the fields it reads. The project reader checks the value against the shape, calls `read` with it, and
reports every name inside it that the shape has no place for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, StrEnum
from typing import Any, NamedTuple

from msgspec import Struct


class FindingLevel(StrEnum):
    ERROR = "error"  # the worker would lack something it asks for
    WARNING = "warning"  # something is ignored; the worker runs
    NOTE = "note"  # handled differently, or not needed here


class Finding(Struct, frozen=True):
    """A finding about a field of a config."""

    level: FindingLevel
    field: str
    text: str
    hint: str = ""


class FieldVerdict(Enum):
    USED = "used"
    IGNORED = "ignored: the worker runs without it"
    MISSING = "not supported: the worker would miss it"


class Subfield(NamedTuple):
    """A subfield that Atoll does not use, inside a field that it does use."""

    why: str
    verdict: FieldVerdict = FieldVerdict.IGNORED
    level: FindingLevel = FindingLevel.NOTE  # a warning if the project may expect an effect
    inert: Any = None  # the value that asks for what Atoll does anyway: no finding


# `remote = true` asks for Cloudflare's copy of the resource during development.
REMOTE = Subfield(
    "bindings always use the node's resources, or those of `atoll dev`", level=FindingLevel.WARNING, inert=False
)


class Reading:
    """The parts of a deploy, collected while the fields of a config are read."""

    def __init__(self, project: str, findings: list[Finding]) -> None:
        self.project = project  # its name
        self.findings = findings
        self.bindings: list[dict[str, Any]] = []
        self.triggers: dict[str, list[Any]] = {}  # by field of the deploy
        self.files: dict[str, Any] = {}  # by field of the deploy: files to send before it

    def bind(self, kind: str, name: str, **fields: Any) -> None:
        """Add an entry to `bindings` of the deploy. Fields without a value are left out."""
        self.bindings.append({"type": kind, "name": name, **given(fields)})

    def trigger(self, field: str, entry: Any) -> None:
        """Add an entry to a field of the deploy that asks for events."""
        self.triggers.setdefault(field, []).append(entry)

    def warn(self, field: str, text: str) -> None:
        self.findings.append(Finding(FindingLevel.WARNING, field, text))


def given(fields: Mapping[str, object]) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value not in (None, "")}


class ConfigField(Struct, frozen=True, kw_only=True):
    """A field at the top level of a config, or of one of its environments."""

    name: str
    shape: Any  # the type of its value, as msgspec takes it; only subfields that are used
    read: Callable[[Any, Reading], None]
    inherited: bool = False  # whether wrangler's environments inherit it from the top level
    subfields: Mapping[str, Subfield] = {}  # the unused subfields, by path: `field[].name`
    unsafe: tuple[str, Any] | None = None  # type and shape of an entry of `unsafe.bindings` that means the same
