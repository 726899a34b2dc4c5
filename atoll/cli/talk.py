"""How commands speak: data to stdout, everything else to stderr, errors with a hint, colours where they are wanted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from atoll.project.model import Project

LEVEL_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


class Failed(click.ClickException):
    """A command cannot do its work: the reason and the hint, each on a line of stderr, and exit code 1.

    With --json both are one JSON object, on stderr too.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        context = click.get_current_context(silent=True)  # it is over when this is shown
        self.as_json = bool(context is not None and context.params.get("as_json"))

    def facts(self) -> dict[str, Any]:
        """The error as --json tells it."""
        return {"message": self.message, "hint": self.hint}

    def show(self, file: IO[str] | None = None) -> None:
        if self.as_json:
            click.echo(json.dumps({"error": self.facts()}, ensure_ascii=False), err=True)
            return
        say(f"{paint('error:', fg='red', bold=True)} {self.message}")
        if self.hint:
            say(f"{paint('hint:', fg='cyan')} {self.hint}")


def wants_colour() -> bool:
    """Colours go to a terminal, unless NO_COLOR is set; FORCE_COLOR wants them anyway."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stderr.isatty()


def paint(text: str, **style: Any) -> str:
    return click.style(text, **style) if wants_colour() else text


def say(text: str = "") -> None:
    click.echo(text, err=True, color=wants_colour() or None)


def show_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def done(text: str, as_json: bool, **facts: object) -> None:
    """What a command did: a sentence for people, or its facts."""
    if as_json:
        show_json(facts)
    else:
        say(text)


def show_table(head: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """Columns as wide as they need to be; without rows, `empty` goes to stderr."""
    cells = [[str(cell) for cell in row] for row in rows]
    if not cells:
        say(empty)
        return
    table = [[name.upper() for name in head], *cells]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for row in table:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def fail(message: str, hint: str = "") -> NoReturn:
    raise Failed(message, hint)


def ask_first(question: str, yes: bool) -> None:
    """Before something is deleted. Ends the command unless the answer is yes, or was given beforehand."""
    if yes:
        return
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():  # Ctrl-C
            raise
        say("")
        fail("nobody is there to answer, so nothing was deleted", "say it beforehand: --yes")
    if not agreed:
        fail("nothing was deleted")


def tell_findings(project: Project, *, allow_missing: bool = False) -> None:
    """One line for each thing to know about a config; ends the command when the worker would miss something."""
    for finding in project.findings:
        level = "warning" if allow_missing and finding.level == "error" else str(finding.level)
        hint = f" ({finding.hint})" if finding.hint else ""
        say(f"{paint(level + ':', fg=LEVEL_COLOURS[level])} `{finding.field}` {finding.text}{hint}")
    if project.errors and not allow_missing:
        names = ", ".join(f"`{finding.field}`" for finding in project.errors)
        fail(f"{names} cannot be had here", "leave it out, or go on without it: --allow-missing-bindings")
