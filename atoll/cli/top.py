"""`atoll top`: what a node does now, as a table that renews itself in a terminal, or once for a pipe.

Names come from tenants, so cells are escaped and cut before they are placed. Only talk.py moves the cursor.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import draw, echo, leave_screen, paint, show_json, use_screen
from atoll.plain import plain_line

if TYPE_CHECKING:
    from atoll.cli.client import Client
    from atoll.cli.top_numbers import Look, TopSnapshot

MB = 1 << 20
NARROWEST = 40
LONGEST_NAME = 32


class Column(NamedTuple):
    head: str
    key: str  # which key sorts by it
    text: Callable[[Any], str]
    value: Callable[[Any], Any]
    is_name: bool = False


def share(value: float) -> str:
    return f"{value * 100:.1f}%" if value else "0%"


def rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def ms(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def size(value: float) -> str:
    return f"{value / MB:,.0f} MB"


def age(seconds: float) -> str:
    return "" if not seconds else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"


LOAD = [
    Column("CALLS/S", "c", lambda line: rate(line.calls), lambda line: line.calls),
    Column("ERRORS", "e", lambda line: share(line.errors), lambda line: line.errors),
    Column("P50 MS", "", lambda line: ms(line.p50_ms), lambda line: line.p50_ms or 0.0),
    Column("P99 MS", "l", lambda line: ms(line.p99_ms), lambda line: line.p99_ms or 0.0),
    Column("CPU", "u", lambda line: share(line.cpu), lambda line: line.cpu),
    Column("NOW", "i", lambda line: str(line.in_flight), lambda line: line.in_flight),
    Column("QUEUED", "d", lambda line: str(line.queued), lambda line: line.queued),
    Column("FULL", "f", lambda line: share(line.full), lambda line: line.full),
    Column("ISOLATES", "", lambda line: str(line.isolates), lambda line: line.isolates),
    Column("MEMORY", "m", lambda line: size(line.memory), lambda line: line.memory),
]
WORKER = Column("WORKER", "n", lambda line: line.worker, lambda line: (line.worker, line.tenant), is_name=True)
TENANT = Column("TENANT", "", lambda line: line.tenant, lambda line: line.tenant, is_name=True)
ENGINES = [
    Column("PROCESS", "n", lambda line: line.name, lambda line: line.name, is_name=True),
    Column("FOR", "", lambda line: line.serves, lambda line: line.serves, is_name=True),
    Column("CPU", "u", lambda line: share(line.cpu), lambda line: line.cpu),
    Column("MEMORY", "m", lambda line: size(line.memory), lambda line: line.memory),
    Column("WORKERS", "", lambda line: str(line.workers), lambda line: line.workers),
    Column("ISOLATES", "", lambda line: str(line.isolates), lambda line: line.isolates),
    Column("NOW", "i", lambda line: str(line.in_flight), lambda line: line.in_flight),
    Column("WAITING", "d", lambda line: str(line.waiting), lambda line: line.waiting),
    Column("UP", "", lambda line: age(line.up), lambda line: line.up),
]
VIEWS: dict[str, list[Column]] = {
    "workers": [WORKER, TENANT, *LOAD],
    "tenants": [TENANT._replace(key="n"), WORKER._replace(head="WORKERS", key=""), *LOAD],
    "engines": ENGINES,
}
HELP = "w t g views   c e l u i d f m n sort   r reverse   space pause   q quit"
LONG_KEY = re.compile(rb"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])")  # arrows and the like, which begin with an escape
KEYS = {"w": "workers", "t": "tenants", "g": "engines"}
SORTS = {
    "name": "n",
    "calls": "c",
    "errors": "e",
    "p99": "l",
    "cpu": "u",
    "now": "i",
    "queued": "d",
    "full": "f",
    "memory": "m",
}


class Shown:
    """What is shown, and how: the keys change it."""

    def __init__(self, view: str, key: str) -> None:
        self.view = view
        self.key = key
        self.is_reversed = False
        self.is_paused = False

    def type(self, typed: bytes) -> bool:
        """Take what was typed since the last time. False: the user wants to leave, or the terminal is gone."""
        keys = LONG_KEY.sub(b"", typed).decode("latin-1").lower()
        return bool(typed) and all(self.press(key) for key in keys)

    def press(self, key: str) -> bool:
        if key in ("q", "\x1b", "\x03", "\x04"):
            return False
        if key == "r":
            self.is_reversed = not self.is_reversed
        elif key == " ":
            self.is_paused = not self.is_paused
        elif key in KEYS:
            self.view = KEYS[key]
        elif key in SORTS.values():
            self.key = key
        return True

    def column(self) -> Column:
        columns = VIEWS[self.view]
        found = [column for column in columns if column.key == self.key]
        return found[0] if found else next(column for column in columns if column.head == "CPU")

    def rows(self, snapshot: TopSnapshot) -> list[Any]:
        by = self.column()
        lines: list[Any] = list(getattr(snapshot, self.view))
        lines.sort(key=VIEWS[self.view][0].value)
        lines.sort(key=by.value, reverse=self.is_reversed is by.is_name)
        return lines


def cell(text: str, *, is_name: bool) -> str:
    text = plain_line(text)
    return f"{text[: LONGEST_NAME - 1]}…" if is_name and len(text) > LONGEST_NAME else text


def table(columns: Sequence[Column], rows: Sequence[Any], sorted_by: Column | None = None) -> list[str]:
    cells = [[cell(column.text(row), is_name=column.is_name) for column in columns] for row in rows]
    widths = [max([len(column.head), *(len(row[i]) for row in cells)]) for i, column in enumerate(columns)]

    def line(texts: Sequence[str]) -> str:
        padded = [
            text.ljust(width) if column.is_name else text.rjust(width)
            for text, width, column in zip(texts, widths, columns, strict=True)
        ]
        return "  ".join(padded).rstrip()

    return [line([column.head for column in columns]), *(line(row) for row in cells)]


def summary(snapshot: TopSnapshot, api: str) -> list[str]:
    node = snapshot.node
    rates = f"{rate(node.calls)} calls/s, {share(node.errors)} errors, {rate(node.refused)} refused/s"
    return [
        f"Atoll {plain_line(node.version)} at {plain_line(api)}: {rates}",
        f"{node.in_flight} calls now, {node.queued} queued, {node.connections} connections, CPU {share(node.cpu)}, "
        f"{size(node.free)} free, event loop p99 {ms(node.lag_ms)} ms",
    ]


def screen(snapshot: TopSnapshot, shown: Shown, api: str, room: tuple[int, int]) -> list[str]:
    """The lines of a whole screen of `room` columns and lines."""
    width, height = max(room[0], NARROWEST), max(room[1], 6)
    rows = table(VIEWS[shown.view], shown.rows(snapshot))
    by = shown.column().head
    first = [*summary(snapshot, api), ""]
    order = f"{shown.view}, by {by.lower()}{', reversed' if shown.is_reversed else ''}"
    keys = f"{order}{', paused' if shown.is_paused else ''}   {HELP}"
    left = height - len(first) - 2
    body = [paint(rows[0][:width], bold=True), *(row[:width] for row in rows[1:left])]
    if len(rows) > left:
        keys = f"{len(rows) - left} more.   {keys}"
    body += [""] * (left - len(body))
    return [
        paint(first[0][:width], bold=True),
        *(line[:width] for line in first[1:]),
        *body,
        "",
        paint(keys[:width], dim=True),
    ]


@click.command()
@click.option(
    "--seconds", type=click.FloatRange(0.2, 3600), default=2.0, show_default=True, help="Time between two looks."
)
@click.option(
    "--view", type=click.Choice(list(VIEWS)), default="workers", show_default=True, help="What has a line each."
)
@click.option(
    "--sort", type=click.Choice(list(SORTS)), default="calls", show_default=True, help="The largest come first."
)
@node_options
@json_option
def top(client: Client, seconds: float, view: str, sort: str, as_json: bool) -> None:
    """Watch the workers, tenants and engines of a node: calls, errors, durations, CPU time, queues and memory.

    In a terminal the table renews itself, and keys choose what it shows. Elsewhere it is printed once, with the rates
    of the time between two looks. For operators: it reads /metrics and /admin/pool.

    \b
    Examples:
      atoll top
      atoll top --view tenants --sort cpu
      atoll top --json --seconds 10
    """
    from atoll.cli.top_numbers import Between, Look

    before = Look(client)
    shown = Shown(view, SORTS[sort])
    if not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        _live(client, before, shown, seconds)
        return
    time.sleep(seconds)
    snapshot = Between(before, Look(client)).snapshot()
    if as_json:
        show_json(
            {
                "node": snapshot.node._asdict(),
                **{name: [line._asdict() for line in getattr(snapshot, name)] for name in VIEWS},
            }
        )
        return
    echo(*summary(snapshot, client.target.api), "", *table(VIEWS[view], shown.rows(snapshot)))


def _live(client: Client, before: Look, shown: Shown, seconds: float) -> None:
    from atoll.cli.top_numbers import Between, Look

    saved = termios.tcgetattr(sys.stdin)
    use_screen()
    try:
        tty.setcbreak(sys.stdin)
        snapshot = Between(None, before).snapshot()
        due = time.monotonic() + min(seconds, 0.5)
        while True:
            width, height = shutil.get_terminal_size()
            draw(screen(snapshot, shown, client.target.api, (width, height)))
            ready = select.select([sys.stdin], [], [], max(due - time.monotonic(), 0))[0]
            if ready and not shown.type(os.read(sys.stdin.fileno(), 64)):
                return
            if time.monotonic() >= due:
                due = time.monotonic() + seconds
                if not shown.is_paused:
                    now = Look(client)
                    snapshot, before = Between(before, now).snapshot(), now
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)
        leave_screen()
