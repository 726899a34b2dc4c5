"""The reference is complete: every setting, option, error and endpoint has its place in it."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from atoll.cli.main import COMMANDS, main
from atoll.config import FIELDS, env_names, facts_of, flag_name, shown_default
from atoll.control.check import KINDS, DeployBody, WantedLimits
from atoll.control.refusals import API_ERRORS, ApiCode
from atoll.wire.generated import ERRORS, OUTCOME_NAMES, ErrorCode

REFERENCE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference"
SETTINGS, API, ERROR_PAGE, CLI = (
    (REFERENCE / f"{name}.md").read_text("utf-8") for name in ("settings", "api", "errors", "cli")
)


def section(page: str, heading: str) -> str:
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"no heading {heading}"
    return found[1]


@pytest.mark.parametrize("name", list(FIELDS))
def test_every_setting_has_its_heading(name: str) -> None:
    text = section(SETTINGS, name)
    for part in (facts_of(name).doc, f"Default: {shown_default(name)} ", flag_name(name), *env_names(name)):
        assert part in text


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_and_option_has_its_row(command: str) -> None:
    text = section(CLI, f"atoll {command}")
    found = main.get_command(click.Context(main), command)
    assert found is not None
    for parameter in found.params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            assert re.search(rf"^\| .*`{option}[ `]", text, re.MULTILINE), option


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_error_of_a_call_has_its_row(code: ErrorCode) -> None:
    facts = ERRORS[code]
    cells = (int(code), f"`{code.name}`", facts.status, facts.page, OUTCOME_NAMES[facts.outcome], facts.meaning)
    assert f"| {' | '.join(map(str, cells))} |" in section(ERROR_PAGE, "Calls")


@pytest.mark.parametrize("code", list(ApiCode))
def test_every_error_of_the_api_has_its_row(code: ApiCode) -> None:
    facts = API_ERRORS[code]
    assert f"| {int(code)} | `{facts.type}` | {facts.status} | {facts.meaning} |" in section(ERROR_PAGE, "Control API")


def test_every_field_of_a_deploy_has_its_row() -> None:
    text = section(API, "POST /api/workers")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(DeployBody.__struct_fields__)
    assert all(f"`{name}`" in text for name in WantedLimits.__struct_fields__)
    assert all(f"`{extension}`" in text for extension in KINDS)
