"""Output of commands: data to stdout, everything else to stderr, errors with a hint, colours in terminals.

All output goes through this module. Most of it contains untrusted text, so all of it is escaped (`atoll/plain.py`).
Only `paint` may add escape sequences: in place of ESC it writes a key that is random for each process, and `echo` turns
the key into ESC after everything else is escaped.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click

from atoll.plain import entry, plain, plain_json, plain_line

if TYPE_CHECKING:
    from atoll.project.model import Project

LEVEL_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
ESCAPE = f"\ue000{os.urandom(16).hex()}\ue001"  # stands for ESC until the text is printed


class Failed(click.ClickException):
    """A command failed: prints the reason and a hint, each on a line of stderr. The exit code is 1.

    With --json both are one JSON object on stderr.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        context = click.get_current_context(silent=True)  # this is the last output
        self.as_json = bool(context is not None and context.params.get("as_json"))

    def facts(self) -> dict[str, Any]:
        """The error as --json prints it."""
        return {"message": self.message, "hint": self.hint}

    def show(self, file: IO[str] | None = None) -> None:
        if self.as_json:
            echo_json({"error": self.facts()}, err=True)
            return
        say(f"{paint('error:', fg='red', bold=True)} {self.message}")
        if self.hint:
            say(f"{paint('hint:', fg='cyan')} {self.hint}")


def wants_colour() -> bool:
    """Colours are used in a terminal. NO_COLOR turns them off, FORCE_COLOR on."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stderr.isatty()


def paint(text: str, **style: Any) -> str:
    if not wants_colour():
        return text
    before, after = click.style("\0", **style).replace("\x1b", ESCAPE).split("\0")
    return f"{before}{text}{after}"


def echo(*lines: object, err: bool = False) -> None:
    """Print lines. A newline inside a line comes from untrusted text; what follows it is indented."""
    colour = (wants_colour() or None) if err else None
    for line in lines or ("",):
        click.echo(printable(str(line)), err=err, color=colour)


def printable(text: str) -> str:
    """One line of Atoll's, with untrusted text escaped and the colours of `paint`."""
    return entry(text).replace(ESCAPE, "\x1b")


def use_screen() -> None:
    """Begin to draw on a screen of its own. What the terminal showed before is kept."""
    click.echo("\x1b[?1049h\x1b[?25l", nl=False, color=True)


def draw(lines: Sequence[str]) -> None:
    """Draw a whole screen over the last one."""
    text = "\x1b[K\r\n".join(plain_line(line).replace(ESCAPE, "\x1b") for line in lines)
    click.echo(f"\x1b[H{text}\x1b[K\x1b[J", nl=False, color=True)


def leave_screen() -> None:
    click.echo("\x1b[?25h\x1b[?1049l", nl=False, color=True)


def say(*lines: object) -> None:
    echo(*lines, err=True)


def echo_json(value: object, *, err: bool = False) -> None:
    """One line of JSON."""
    click.echo(plain_json(json.dumps(value, ensure_ascii=False)), err=err)


def show_json(value: object) -> None:
    click.echo(plain_json(json.dumps(value, indent=2, ensure_ascii=False)))


def write_raw(chunks: Iterable[bytes]) -> None:
    """Write data byte for byte to a file or a pipe. A terminal gets printable text instead."""
    if not sys.stdout.isatty():
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        return
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    last = "\n"
    for chunk in chain(chunks, [b""]):  # the empty chunk flushes an incomplete character
        text = decoder.decode(chunk, final=not chunk)
        click.echo(plain(text), nl=False)
        last = text[-1:] or last
    if last != "\n":
        click.echo()


def shown_time(timestamp: str | None) -> str:
    """A time of the API for a table: to the second, in UTC, with a Z."""
    if not timestamp:
        return "never"
    return f"{timestamp[:19]}Z" if len(timestamp) > 19 else timestamp


def show_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an unexpected error in place of Python's own report, escaped: its text may be untrusted."""
    import traceback

    click.echo(plain("".join(traceback.format_exception(kind, error, trace))), err=True, nl=False)


def done(text: str, as_json: bool, **facts: object) -> None:
    """Print what a command did: a sentence, or JSON."""
    if as_json:
        show_json(facts)
    else:
        say(text)


def show_table(head: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """Print a table with columns as wide as needed. Without rows, `empty` goes to stderr."""
    cells = [[plain_line(str(cell)) for cell in row] for row in rows]
    if not cells:
        say(empty)
        return
    table = [[name.upper() for name in head], *cells]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for row in table:
        echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def fail(message: str, hint: str = "") -> NoReturn:
    raise Failed(message, hint)


def ask_first(question: str, yes: bool) -> None:
    """Ask before something is deleted. Ends the command unless the answer is yes or --yes was given."""
    if yes:
        return
    try:
        agreed = click.confirm(plain_line(question), err=True)
    except click.Abort:
        if sys.stdin.isatty():  # Ctrl-C
            raise
        say("")
        fail("this needs a confirmation and stdin is not a terminal, so nothing was deleted", "confirm with --yes")
    if not agreed:
        fail("nothing was deleted")


def tell_findings(project: Project, *, allow_missing: bool = False) -> None:
    """Print one line per finding about a config. Ends the command if a binding is missing."""
    for finding in project.findings:
        level = "warning" if allow_missing and finding.level == "error" else str(finding.level)
        hint = f" ({finding.hint})" if finding.hint else ""
        say(f"{paint(level + ':', fg=LEVEL_COLOURS[level])} `{finding.field}` {finding.text}{hint}")
    if project.errors and not allow_missing:
        names = ", ".join(f"`{finding.field}`" for finding in project.errors)
        fail(f"Atoll does not have {names}", "remove it from the config, or go on without it: --allow-missing-bindings")
