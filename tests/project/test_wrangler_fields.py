"""Every field and subfield of wrangler's config has one treatment: used, ignored with one line, or an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atoll.manifests.config_fields import FieldVerdict, Finding, FindingLevel
from atoll.project.model import Project
from atoll.project.read import read_project
from atoll.project.shapes import FIELDS
from atoll.project.subfields import PART, SUBFIELDS, treatment_of
from tests.project.conftest import Write

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "project.md"
LIST = Path(__file__).with_name("wrangler_fields.txt")  # written by tools/wrangler_fields.py
KNOWN = [line for line in LIST.read_text("utf-8").splitlines() if not line.startswith("#")]
# What an entry needs besides the subfield under test.
NEEDED: dict[str, dict[str, Any]] = {
    "route": {"pattern": "shop.example/*"},
    "routes[]": {"pattern": "shop.example/*"},
    "assets": {"directory": "public"},
    "site": {"bucket": "public"},
    "ai": {"binding": "AI"},
    "send_email[]": {"name": "EMAIL"},
    "kv_namespaces[]": {"binding": "KV"},
    "d1_databases[]": {"binding": "DB"},
    "hyperdrive[]": {"binding": "DB"},
    "mtls_certificates[]": {"binding": "BANK", "certificate_id": "bank"},
    "analytics_engine_datasets[]": {"binding": "VISITS"},
    "secrets_store_secrets[]": {"binding": "S", "store_id": "shared", "secret_name": "KEY"},
    "r2_buckets[]": {"binding": "FILES"},
    "queues.producers[]": {"binding": "JOBS", "queue": "jobs"},
    "queues.consumers[]": {"queue": "jobs"},
    "services[]": {"binding": "API", "service": "api"},
    "workflows[]": {"binding": "FLOW", "name": "flow", "class_name": "Flow"},
    "migrations[]": {"tag": "v1"},
    "rules[]": {"type": "Text", "globs": ["**/*.txt"]},
    "unsafe.bindings[]": {
        "type": "ratelimit",
        "name": "RL",
        "namespace_id": "1",
        "simple": {"limit": 1, "period": 10},
    },
}
Read = Callable[[dict[str, Any]], Project]


@pytest.fixture
def read(write: Write) -> Read:
    def read(fields: dict[str, Any]) -> Project:
        import json

        config = {"name": "shop", "main": "w.js", "compatibility_date": "2025-01-01"} | fields
        return read_project(write(**{"wrangler.json": json.dumps(config), "w.js": "export default {}"}))

    return read


def config_with(path: str, value: Any, entries: int = 1) -> dict[str, Any]:
    """The smallest config that sets the field `path` to this value, in several entries if there is a list."""
    place = ""
    holders: list[Any] = [{}]
    root = holders[0]
    parts = PART.findall(path)
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        place += part if part == "[]" else f".{part}" if place else part
        made: list[Any] = []
        for holder in holders:
            for number in range(entries if part == "[]" else 1):
                inner = value if after is None else [] if after == "[]" else dict(NEEDED.get(place, {}))
                if part == "[]":
                    inner |= {key: f"{inner[key]}{number}" for key in ("binding", "name") if key in inner}
                    holder.append(inner)
                else:
                    holder[part] = inner
                made.append(inner)
        holders = made
    assert isinstance(root, dict)
    return root


def test_every_field_of_wrangler_has_a_treatment() -> None:
    assert len(KNOWN) > 400
    assert [path for path in KNOWN if treatment_of(path) is None] == []


def test_the_table_has_no_subfield_that_is_used_or_outside_a_used_field() -> None:
    assert [path for path in SUBFIELDS if FIELDS[PART.findall(path)[0]].verdict is not FieldVerdict.USED] == []
    assert [path for path in SUBFIELDS if path not in KNOWN] == []


def test_an_undefined_subfield_of_a_used_field_is_unknown() -> None:
    used = [path for path in KNOWN if "." in path and treatment_of(path) is FieldVerdict.USED]
    wrong = {path for path in used if treatment_of(f"{path}_wat") is not None}
    # These may have any field.
    assert len(used) > 40 and {path.partition("[]")[0].partition(".*")[0] for path in wrong} == {
        "unsafe.bindings", "exports",
    }  # fmt: skip


@pytest.mark.parametrize("path", SUBFIELDS)
def test_an_unused_subfield_gets_one_line_for_any_number_of_uses(read: Read, path: str) -> None:
    subfield = SUBFIELDS[path]
    entries = 2 if "[]" in path and not path.startswith("unsafe") else 1
    wanted = FindingLevel.ERROR if subfield.verdict is FieldVerdict.MISSING else subfield.level
    found = read(config_with(path, "x", entries)).findings
    assert [(finding.field, finding.level) for finding in found] == [(path, wanted)]
    assert subfield.why in found[0].text


@pytest.mark.parametrize("path", [path for path, subfield in SUBFIELDS.items() if subfield.inert is not None])
def test_a_subfield_with_the_default_behaviour_is_not_mentioned(read: Read, path: str) -> None:
    assert read(config_with(path, SUBFIELDS[path].inert)).findings == []


@pytest.mark.parametrize("name", [name for name, field in FIELDS.items() if field.inert is not None])
def test_a_field_with_the_default_behaviour_is_not_mentioned(read: Read, name: str) -> None:
    assert read({name: FIELDS[name].inert}).findings == []
    assert [finding.field for finding in read({name: not FIELDS[name].inert}).findings] == [name]


@pytest.mark.parametrize(
    ("fields", "place", "meant"),
    [
        ({"observabilty": {}}, "observabilty", "observability"),
        ({"dev": {"local_protocl": "https"}}, "dev.local_protocl", "dev.local_protocol"),
        ({"dev": {"prt": 1}}, "dev.prt", "dev.port"),
        ({"routes": [{"pattern": "a/*", "zone_nam": "x"}]}, "routes[0].zone_nam", "routes[0].zone_name"),
        (
            {"queues": {"producers": [{"binding": "Q", "queue": "q", "delivry_delay": 1}]}},
            "queues.producers[0].delivry_delay",
            "queues.producers[0].delivery_delay",
        ),
        (
            {"unsafe": {"bindings": [NEEDED["unsafe.bindings[]"] | {"namespaceid": 1}]}},
            "unsafe.bindings[0].namespaceid",
            "unsafe.bindings[0].namespace_id",
        ),
    ],
)
def test_an_unknown_name_is_reported_with_a_suggestion(
    read: Read, fields: dict[str, Any], place: str, meant: str
) -> None:
    text = "is not a known field, so it has no effect"
    assert read(fields).findings == [Finding(FindingLevel.WARNING, place, text, f"did you mean `{meant}`?")]


def test_every_unused_subfield_has_a_row_in_the_reference() -> None:
    page = PAGE.read_text("utf-8")
    assert [path for path, each in SUBFIELDS.items() if f"\n| `{path}` |" not in page or each.why not in page] == []
