"""The output and the keys of `atoll dev`.

A console line is printed when it is written, a call when it ends. Both are printed once per turn of the event loop, at
most MAX_LINES: a load test must not be slowed down by its own output.
"""

from __future__ import annotations

import asyncio
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from atoll.cli.dev.places import Places
from atoll.cli.talk import echo, echo_json, paint, say
from atoll.engine.limits import EVENT_CPU_MS
from atoll.errors import Failure
from atoll.logs import Invocation, LogLine, Said
from atoll.plain import plain_line
from atoll.wire.generated import OUTCOME_NAMES, Level

MAX_LINES = 200  # lines and calls printed in one turn
LEVEL_COLOURS = {Level.DEBUG: "bright_black", Level.WARN: "yellow", Level.ERROR: "red"}
CLOSE_TO_LIMIT = 0.8


class TerminalNode(Protocol):
    """What the terminal needs of the session's node, a DevNode."""

    places: dict[str, Places]  # by worker

    def explained(self, version_id: str, failure: Failure) -> Failure: ...
    def call_was_cold(self) -> bool: ...
    def calls_under_way(self) -> int: ...


class Terminal:
    """Prints text, or one JSON object per line."""

    def __init__(self, node: TerminalNode, *, as_json: bool) -> None:
        self._node = node
        self._has_several = len(node.places) > 1  # then each line names its worker
        self._as_json = as_json
        self._waiting: list[Invocation | Said] = []
        self._skipped = 0

    # What happens to the project

    def tell(self, event: str, *lines: str, **facts: Any) -> None:
        if self._as_json:
            echo_json({"event": event, **facts})
        elif any(lines):
            say(*lines)

    def tell_error(self, event: str, worker: str, text: str, hint: str = "") -> None:
        if self._as_json:
            echo_json({"event": event, "worker": worker, "message": text, "hint": hint})
            return
        say("", f"{paint('error:', fg='red', bold=True)} {self.mark(worker)}{coloured_frame(text)}")
        if hint:
            say(f"{paint('hint:', fg='cyan')} {hint}")
        say()

    def mark(self, worker: str) -> str:
        """The worker's name at the start of a line, if there are several workers."""
        return paint(f"{worker}  ", fg="magenta") if self._has_several else ""

    # Calls and their console lines

    def on_call(self, record: Invocation) -> None:
        self._take(record)

    def on_line(self, said: Said) -> None:
        self._take(said)

    def _take(self, what: Invocation | Said) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        if len(self._waiting) < MAX_LINES:
            self._waiting.append(what)
        else:
            self._skipped += 1

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        skipped, self._skipped = self._skipped, 0
        cold = self._node.call_was_cold()
        for what in waiting:
            if isinstance(what, Said):
                self._show_line(what)
            else:
                self._show_call(what, cold)
                cold = False
        if skipped:
            self.tell("skipped", f"  … and {skipped} lines more", count=skipped)

    def _show_line(self, said: Said) -> None:
        method, path = asked_of(said.head)
        worker = said.version.worker_name
        level, text = level_of(said.line), self._mapped(worker, said.line.text)
        if self._as_json:
            facts = {"level": level, "message": text, "method": method, "path": path}
            echo_json({"event": "log", "worker": worker, **facts})
            return
        shown = paint(f"{level:<5}", fg=LEVEL_COLOURS.get(said.line.level, "cyan"))
        among = said.call and self._node.calls_under_way() > 1  # otherwise the worker is clear
        who = paint(f"{method} {path}  ", dim=True) if among else ""
        echo(f"  {shown} {self.mark(worker)}{who}{indented(text)}")

    def _show_call(self, record: Invocation, cold: bool) -> None:
        failure = self._node.explained(record.version.id, record.failure) if record.failure is not None else None
        method, path = asked_of(record.head)
        if self._as_json:
            facts = facts_of(record, method, path, cold, failure)
            worker = record.version.worker_name
            facts["logs"] = [
                {"level": level_of(line), "message": self._mapped(worker, line.text)} for line in record.logs
            ]
            echo_json(facts)
            return
        echo(self.mark(record.version.worker_name) + summary(record, method, path, cold))
        if failure is not None:
            name = f"{failure.name}: " if failure.name and not failure.message.startswith(failure.name) else ""
            frame = failure.stack.partition("\n\n")[0] if failure.stack.startswith("    ") else ""
            say(f"  {paint(indented(name + failure.message), fg='red')}")
            if frame:
                say(*coloured_frame(frame).split("\n"))

    def _mapped(self, worker: str, text: str) -> str:
        places = self._node.places.get(worker)
        return text if places is None else places.mapped(text)


def indented(text: str) -> str:
    """Text from a worker. Its further lines are indented deeper than any line that Atoll writes."""
    return text.replace("\n", "\n" + " " * 8)


def asked_of(head: bytes) -> tuple[str, str]:
    """Method and path of a call, or the kind and name of another event: CRON and its expression."""
    method, _, url = head.partition(b"\n")[0].decode("latin-1").partition(" ")
    path = "/" + url.split("/", 3)[3] if "://" in url and url.count("/") >= 3 else url
    return plain_line(method), plain_line(path)


def level_of(line: LogLine) -> str:
    return line.level.name.lower()


def summary(record: Invocation, method: str, path: str, cold: bool) -> str:
    """One line: the request, its outcome and what it used."""
    outcome = OUTCOME_NAMES[record.outcome]
    good = outcome == "ok" and record.status < 400
    status = str(record.status) if record.status else outcome
    colour = "green" if good else "yellow" if outcome == "ok" and record.status < 500 else "red"
    what = f"{method} {path}" if record.event == "fetch" else f"{record.event} {method} {path}"
    ended = "" if outcome == "ok" else f"  {outcome}"
    used = "  ".join(used_by(record))
    return f"{what}  {paint(status, fg=colour)}{ended}  {used}  {'cold' if cold else 'warm'}"


def used_by(record: Invocation) -> Iterator[str]:
    """What a call used. A value close to its limit is highlighted and shown with the limit."""
    limits = record.version.limits

    def part(text: str, used: float, limit: int) -> str:
        return paint(f"{text} of {limit}", fg="yellow") if used > limit * CLOSE_TO_LIMIT else text

    cpu_ms, internal = record.cpu_us / 1000, record.subrequests - record.fetches
    is_awaited = record.event in ("fetch", "rpc")  # a cron trigger has a higher limit
    yield part(f"cpu {cpu_ms:.1f} ms", cpu_ms, limits.cpu_ms if is_awaited else max(limits.cpu_ms, EVENT_CPU_MS))
    yield f"wall {record.wall_us / 1000:.1f} ms"  # its limit covers only the head of the response
    if record.memory_mb:
        yield part(f"memory {record.memory_mb} MB", record.memory_mb, limits.memory_mb)
    if record.fetches:
        yield part(f"fetches {record.fetches}", record.fetches, limits.subrequests)
    if internal:
        yield part(f"binding calls {internal}", internal, limits.internal_subrequests)


def facts_of(record: Invocation, method: str, path: str, cold: bool, failure: Failure | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "event": "call",
        "worker": record.version.worker_name,
        "kind": record.event,
        "method": method,
        "path": path,
        "outcome": OUTCOME_NAMES[record.outcome],
        "status": record.status,
        "cpu_ms": record.cpu_us / 1000,
        "wall_ms": record.wall_us / 1000,
        "memory_mb": record.memory_mb,
        "fetches": record.fetches,
        "binding_calls": record.subrequests - record.fetches,
        "cold": cold,
    }
    if failure is not None:
        facts["exception"] = {"name": failure.name, "message": failure.message, "stack": failure.stack}
    return facts


def coloured_frame(text: str) -> str:
    """Highlights the marked line of a code frame and dims the rest."""
    lines = []
    for line in text.split("\n"):
        if line.startswith("  > ") or line.lstrip(" |").startswith("^"):
            line = _painted(line, fg="red")
        elif line.startswith("    ") and "|" in line:
            line = _painted(line, dim=True)
        lines.append(line)
    return "\n".join(lines)


def _painted(line: str, **style: Any) -> str:
    """Colours a line after its indentation, which `say` must see."""
    text = line.lstrip(" ")
    return " " * (len(line) - len(text)) + paint(text, **style)


class Keys:
    """Single keys of a terminal, without Return; none if stdin is not a terminal. Restores the terminal's mode."""

    def __init__(self, on_key: Callable[[str], None]) -> None:
        self._on_key = on_key
        self._before: list[Any] | None = None

    def __enter__(self) -> Keys:
        if sys.stdin.isatty():
            self._before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._read)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def _read(self) -> None:
        import os

        try:
            pressed = os.read(sys.stdin.fileno(), 64).decode("utf-8", "replace")
        except OSError:
            pressed = ""
        if not pressed:  # the terminal is gone
            self._on_key("q")
        for key in pressed:
            self._on_key(key.lower())
