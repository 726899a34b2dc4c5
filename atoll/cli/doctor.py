"""`atoll doctor`: whether a project would run here, and whether this machine and its node are well."""

from __future__ import annotations

import asyncio
import datetime
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from atoll import __version__
from atoll.cli.options import json_option, node_options
from atoll.cli.talk import Failed, paint, show_json

if TYPE_CHECKING:
    from atoll.cli.client import Client
    from atoll.project.model import Project

SECURITY_PAGE = "docs/concepts/security.md says what it needs"
LIMITS = ("cpu_ms", "wall_ms", "memory_mb", "subrequests", "internal_subrequests", "body_bytes")
MOST = frozenset([*(f"max_{name}" for name in LIMITS), "script_bytes"])
MARKS = {"ok": ("✓", "green"), "note": ("·", "cyan"), "warning": ("!", "yellow"), "error": ("✗", "red")}


class Check(NamedTuple):
    """One thing that was looked at."""

    about: str
    level: str
    text: str
    hint: str = ""


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("-e", "--env", "environment", default="", metavar="NAME", help="An environment of the config.")
@click.option("--sandbox/--no-sandbox", default=True, help="Start an engine to see what confines it.  [default: yes]")
@node_options
@json_option
def doctor(client: Client, path: Path | None, environment: str, sandbox: bool, as_json: bool) -> None:
    """Look at the project at PATH (by default here), at this machine, and at the node commands speak to.

    Every field of a wrangler config that Atoll does not use is named before anything runs. The node is asked for its
    versions, for what confines its engines and for the limits of calls. Unless that is another machine, an engine is
    started here too, to see what would confine it. Ends with 1 when something is an error.

    \b
    Examples:
      atoll doctor
      atoll doctor ~/cloudflare-project --env production
      atoll doctor --api https://atoll.example
    """
    checks: list[Check] = []
    for part in (_project(path, environment), _machine(sandbox and client.is_local), _node(client)):
        for check in part:
            checks.append(check)
            if not as_json:
                _show(check, len(checks) == 1 or checks[-2].about != check.about)
    if as_json:
        show_json([check._asdict() for check in checks])
    if any(check.level == "error" for check in checks):
        sys.exit(1)


def _show(check: Check, is_first: bool) -> None:
    mark, colour = MARKS[check.level]
    if is_first:
        click.echo(f"{paint(check.about, bold=True)}")
    click.echo(f"  {paint(mark, fg=colour)} {check.text}" + (f"\n    hint: {check.hint}" if check.hint else ""))


def _project(path: Path | None, environment: str) -> Iterator[Check]:
    from atoll.project.build import Builder
    from atoll.project.model import ProjectError
    from atoll.project.read import read_project

    try:
        project = read_project(path, environment)
    except ProjectError as error:
        level = "note" if path is None and "there is no project" in str(error) else "error"
        yield Check("project", level, str(error), error.hint)
        return
    where = project.config or project.main
    yield Check("project", "ok", f"{project.name}, from {where}, as of {project.compatibility_date}")
    for finding in project.findings:
        yield Check("project", str(finding.level), f"`{finding.field}` {finding.text}", finding.hint)
    for binding in project.bindings:
        target = next((str(value) for key, value in binding.items() if key not in ("type", "name")), "")
        yield Check("project", "ok", f"env.{binding['name']}: {binding['type']} {target}".rstrip())
    yield from _refusals(project)
    with Builder(project) as builder:
        try:
            built = builder.build()
        except ProjectError as error:
            yield Check("project", "error", str(error), error.hint)
            return
        how = f"bundled, since {builder.why_bundled}" if built.bundled else "taken as it is"
    yield Check("project", "ok", f"builds: {built.size / 1024:,.1f} KB, {how}")
    for module in sorted(_node_modules(built.modules[0].source)):
        yield Check("project", "note", f"it imports {module}; see docs/reference/web-apis.md for what is there of it")


def _refusals(project: Project) -> Iterator[Check]:
    """What a node would not take, whatever the code is."""
    from atoll.control.check import checked_date, checked_env, checked_name
    from atoll.control.check_events import checked_crons
    from atoll.control.refusals import Refused

    today = datetime.datetime.now(datetime.UTC).date()
    for check in (
        lambda: checked_name(project.name),
        lambda: checked_date(project.compatibility_date, today),
        lambda: checked_crons(project.crons),
        lambda: checked_env(project.vars),
    ):
        try:
            check()
        except Refused as refused:
            yield Check("project", "error", str(refused), refused.hint)


def _node_modules(source: bytes) -> set[str]:
    import re

    return {name.decode() for name in re.findall(rb'from\s*"(node:[\w/]+)"', source)}


def _machine(sandbox: bool) -> Iterator[Check]:
    from atoll.project.fetch import bundler_version, cache_folder, node_folder

    python = ".".join(map(str, sys.version_info[:3]))
    yield Check("machine", "ok", f"Atoll {__version__}, Python {python}")
    yield Check("machine", "ok", f"node and npm in {node_folder()}")
    there = (cache_folder() / f"esbuild-{bundler_version()}").is_dir()
    fetched = "fetched" if there else "not fetched yet: npm gets it when a project needs it"
    yield Check("machine", "ok" if there else "note", f"bundler esbuild {bundler_version()}: {fetched}")
    yield _hot_path()
    if not sandbox:
        return
    try:
        held, missing = asyncio.run(_layers())
    except Exception as error:  # whatever it is, this is the place to say it
        yield Check("machine", "error", f"no engine starts: {error}", getattr(error, "hint", ""))
        return
    yield Check("machine", "ok", f"an engine starts; confined by {', '.join(held) or 'nothing'}")
    for layer in missing:
        yield Check("machine", "warning", f"not confined by {layer}", SECURITY_PAGE)


def _hot_path() -> Check:
    from atoll.front import connection

    if not connection.__file__.endswith(".py"):
        return Check("machine", "ok", "what handles requests is compiled")
    hint = "the build found no headers of Python: apt install python3-dev, and install Atoll again"
    return Check("machine", "note", "what handles requests runs as Python, at two thirds of its speed", hint)


async def _layers() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What confines a real engine, started in a folder of its own for this."""
    from atoll.app import Node
    from atoll.config import Settings

    logging.disable(logging.WARNING)  # it would say what is said here
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Settings(port=0, data=Path(folder) / "data", engines=1, spares=0, drain_seconds=0.1))
        await node.start()
        try:
            layers = node.supervisor.layers
            return layers.held, layers.missing
        finally:
            await node.stop()


def _node(client: Client) -> Iterator[Check]:
    client.timeout = 5
    try:
        health = client.get("/health")
        if not isinstance(health, dict) or "version" not in health:
            raise Failed(f"{client.target.api} answers, but not as a node of Atoll", "check --api or the profile")
    except Failed as failed:
        level = "note" if client.is_local else "error"  # who names a node wants it; nobody needs one here
        yield Check("node", level, failed.message, failed.hint)
        return
    level = "ok" if health["version"] == __version__ else "warning"
    differs = "" if level == "ok" else f"this command is {__version__}: install the same on both"
    text = f"{client.target.api}: {health['status']}, {health['engines']} engines, Atoll {health['version']}"
    yield Check("node", level if health["status"] == "ok" else "error", text, differs)
    yield from _asked(client, "/admin/pool", _pool)
    yield from _asked(client, "/api/config", _limits)


def _asked(client: Client, path: str, told: Callable[[dict[str, Any]], Iterator[Check]]) -> Iterator[Check]:
    """What an answer of the node tells; that it gives none is told too."""
    try:
        yield from told(client.get(path))
    except Failed as failed:
        yield Check("node", "note", f"{path}: {failed.message}", failed.hint)


def _pool(pool: dict[str, Any]) -> Iterator[Check]:
    load = f"{pool['cached']} of {pool['total']} workers loaded, {pool['in_flight']} calls under way"
    lost = f", {pool['engines_lost']} engines lost" if pool["engines_lost"] else ""
    yield Check("node", "ok", f"V8 {pool.get('v8') or 'unknown'}; {load}{lost}")
    if pool.get("is_short_of_memory"):
        yield Check("node", "warning", f"short of memory: {pool['free_mb']} MB are free", "see min_free_mb")
    layers = pool.get("sandbox")
    if layers is None:
        yield Check("node", "note", "it does not say what confines its engines: it is older than this command")
        return
    if layers["held"]:
        yield Check("node", "ok", f"its engines are confined by {', '.join(layers['held'])}")
    else:
        yield Check("node", "warning", "its engines are not confined", "start it with --sandbox=require")
    for layer in layers["missing"]:
        yield Check("node", "warning", f"its engines are not confined by {layer}", SECURITY_PAGE)


def _limits(config: dict[str, Any]) -> Iterator[Check]:
    values = {each["name"]: each["value"] for each in config["settings"]}
    shown = ", ".join(f"{name} {values[name]}" for name in LIMITS if name in values)
    yield Check("node", "ok", f"a call may use: {shown}")
    most = ", ".join(f"{name} {values[name]}" for name in values if name in MOST)
    yield Check("node", "ok", f"a worker may ask for: {most}")
