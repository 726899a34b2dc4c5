"""The reference is complete: every setting, option, error and endpoint is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from atoll.api.refusals import API_ERRORS, ApiCode
from atoll.cli.main import COMMANDS, ENTRIES, main
from atoll.config import FIELDS, env_names, facts_of, flag_name, shown_default
from atoll.control.checks.body import DeployBody, WantedLimits
from atoll.wire.generated import ERRORS, OUTCOME_NAMES, ErrorCode
from atoll.workers import KIND_OF_ENDING

REFERENCE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference"
SETTINGS, API, ERROR_PAGE, CLI = (
    (REFERENCE / f"{name}.md").read_text("utf-8") for name in ("settings", "api", "errors", "cli")
)


def section(page: str, heading: str) -> str:
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"no heading {heading}"
    return found[1]


@pytest.mark.parametrize("name", list(FIELDS))
def test_every_setting_has_a_heading(name: str) -> None:
    text = section(SETTINGS, name)
    for part in (facts_of(name).doc, f"Default: {shown_default(name)} ", flag_name(name), *env_names(name)):
        assert part in text


def commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """A command and all its subcommands, each by its full name."""
    yield name, command
    for inner in command.list_commands(click.Context(command)) if isinstance(command, click.Group) else ():
        found = command.get_command(click.Context(command), inner)  # type: ignore[attr-defined]
        yield from commands(f"{name} {inner}", found)


EVERY_COMMAND = dict(commands("atoll", main))


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_every_command_and_option_has_a_row(name: str) -> None:
    text = section(CLI, name)
    for parameter in EVERY_COMMAND[name].params:
        for option in (*parameter.opts, *parameter.secondary_opts) if isinstance(parameter, click.Option) else ():
            message = f"{option}: run `python tools/gen_cli.py`"
            assert re.search(rf"^\| .*`{option}[ `]", text, re.MULTILINE), message


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_examples(name: str) -> None:
    text = EVERY_COMMAND[f"atoll {name}"].help or ""
    assert "Examples:" in text
    assert ENTRIES[name].help.rstrip(".")


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_error_of_a_call_has_a_row(code: ErrorCode) -> None:
    facts = ERRORS[code]
    cells = (int(code), f"`{code.name}`", facts.status, facts.page, OUTCOME_NAMES[facts.outcome], facts.meaning)
    assert f"| {' | '.join(map(str, cells))} |" in section(ERROR_PAGE, "Calls")


@pytest.mark.parametrize("code", list(ApiCode))
def test_every_error_of_the_api_has_a_row(code: ApiCode) -> None:
    facts = API_ERRORS[code]
    assert f"| {int(code)} | `{facts.type}` | {facts.status} | {facts.meaning} |" in section(ERROR_PAGE, "Control API")


def test_every_field_of_a_deploy_has_a_row() -> None:
    text = section(API, "POST /api/workers")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(DeployBody.__struct_fields__)
    assert all(f"`{name}`" in text for name in WantedLimits.__struct_fields__)
    assert all(f"`{extension}`" in text for extension in KIND_OF_ENDING)
