"""`atoll doctor`: whether a project runs here, and the state of this machine and its node."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atoll import __version__
from atoll.cli.doctor_data import damage_check, data_checks
from atoll.cli.doctor_project import Check, Trial, project_checks
from atoll.cli.options import WantedProject, json_option, node_options, project_options
from atoll.cli.talk import Failed, echo, paint, show_json

if TYPE_CHECKING:
    from atoll.cli.client import Client

SECURITY_PAGE = "see docs/concepts/security.md for what it needs"
LIMITS = ("cpu_ms", "wall_ms", "memory_mb", "subrequests", "internal_subrequests", "body_bytes")
MOST = frozenset([*(f"max_{name}" for name in LIMITS), "script_bytes"])
MARKS = {"ok": ("✓", "green"), "note": ("·", "cyan"), "warning": ("!", "yellow"), "error": ("✗", "red")}


@click.command()
@project_options
@click.option(
    "--sandbox/--no-sandbox",
    default=True,
    help="Start an engine, load the project in it and check its sandbox.  [default: yes]",
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Check the data folder of a node that does not run, and nothing else.",
)
@node_options
@json_option
def doctor(client: Client, wanted: WantedProject, sandbox: bool, data: Path | None, as_json: bool) -> None:
    """Check the project at PATH (by default the current folder), this machine, and the node that commands use.

    Reads and builds the project. Lists each config field that Atoll does not use, and each built-in module and global
    that the code uses and Atoll does not have. Shows the versions, sandbox and limits of the node. Unless the node is
    on another machine, also starts an engine here, loads the project in it and checks its sandbox. The exit code is 1
    if there is an error.

    \b
    Examples:
      atoll doctor
      atoll doctor ~/cloudflare-project --env production
      atoll doctor --api https://atoll.example
      atoll doctor --data /var/lib/atoll
    """
    checks: list[Check] = []
    trial = Trial(starts=sandbox and client.is_local)
    parts = (
        (project_checks(wanted, trial), _machine(trial), _node(client))
        if data is None
        else (_problems(data), data_checks(data))
    )
    for part in parts:
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
        echo(paint(check.about, bold=True))
    echo(f"  {paint(mark, fg=colour)} {check.text}", *([f"    hint: {check.hint}"] if check.hint else []))


def _machine(trial: Trial) -> Iterator[Check]:
    from atoll.project.fetch import bundler_version, cache_folder, node_folder

    python = ".".join(map(str, sys.version_info[:3]))
    yield Check("machine", "ok", f"Atoll {__version__}, Python {python}")
    yield Check("machine", "ok", f"node and npm in {node_folder()}")
    there = (cache_folder() / f"esbuild-{bundler_version()}").is_dir()
    fetched = "fetched" if there else "not fetched yet: npm fetches it when a project needs it"
    yield Check("machine", "ok" if there else "note", f"bundler esbuild {bundler_version()}: {fetched}")
    yield _hot_path()
    yield from _problems(_data_folder())
    if not trial.starts:
        return
    trial.run()
    if trial.layers is None:
        yield Check("machine", "error", f"an engine does not start: {trial.error}", getattr(trial.error, "hint", ""))
        return
    held, missing = trial.layers
    yield Check("machine", "ok", f"an engine starts; confined by {', '.join(held) or 'nothing'}")
    for layer in missing:
        yield Check("machine", "warning", f"not confined by {layer}", SECURITY_PAGE)


def _problems(data: Path) -> Iterator[Check]:
    from atoll.observe.machine import machine_problems

    for problem in machine_problems(data):
        yield Check("machine", "warning", problem.text, problem.hint)


def _data_folder() -> Path:
    """That of a node that is started here."""
    from atoll.config import Settings
    from atoll.config_loading import load
    from atoll.errors import StartError

    try:
        return load(None, os.environ, {}).data
    except StartError:
        return Settings().data


def _hot_path() -> Check:
    from atoll.front import connection

    if not connection.__file__.endswith(".py"):
        return Check("machine", "ok", "request handling is compiled")
    hint = "the build found no Python headers: apt install python3-dev, then install Atoll again"
    return Check("machine", "note", "request handling is not compiled: it runs at two thirds of its speed", hint)


def _node(client: Client) -> Iterator[Check]:
    client.timeout = 5
    try:
        health = client.get("/health")
        if not isinstance(health, dict) or "version" not in health:
            raise Failed(f"{client.target.api} answers, but is not an Atoll node", "check --api or the profile")
    except Failed as failed:
        level = "note" if client.is_local else "error"  # only a node that was named must answer
        yield Check("node", level, failed.message, failed.hint)
        return
    level = "ok" if health["version"] == __version__ else "warning"
    differs = "" if level == "ok" else f"this command is {__version__}: install the same version on both"
    text = f"{client.target.api}: {health['status']}, {health['engines']} engines, Atoll {health['version']}"
    yield Check("node", level if health["status"] == "ok" else "error", text, differs)
    yield from _asked(client, "/admin/pool", _pool)
    yield from _asked(client, "/api/config", _limits)
    yield from _asked(client, "/api/damage", _damage)


def _asked(client: Client, path: str, told: Callable[[dict[str, Any]], Iterator[Check]]) -> Iterator[Check]:
    """Checks made from one answer of the node, or one check that reports why there is no answer."""
    try:
        yield from told(client.get(path))
    except Failed as failed:
        yield Check("node", "note", f"{path}: {failed.message}", failed.hint)


def _pool(pool: dict[str, Any]) -> Iterator[Check]:
    load = f"{pool['cached']} of {pool['total']} workers loaded, {pool['in_flight']} calls in flight"
    lost = f", {pool['engines_lost']} engines lost" if pool["engines_lost"] else ""
    yield Check("node", "ok", f"V8 {pool.get('v8') or 'unknown'}; {load}{lost}")
    if pool.get("is_short_of_memory"):
        yield Check("node", "warning", f"low on memory: {pool['free_mb']} MB free", "see the setting min_free_mb")
    layers = pool.get("sandbox")
    if layers is None:
        yield Check("node", "note", "it does not report what confines its engines: it is older than this command")
        return
    if layers["held"]:
        yield Check("node", "ok", f"its engines are confined by {', '.join(layers['held'])}")
    else:
        yield Check("node", "warning", "its engines are not confined", "start it with --sandbox=require")
    for layer in layers["missing"]:
        yield Check("node", "warning", f"its engines are not confined by {layer}", SECURITY_PAGE)


def _damage(found: dict[str, Any]) -> Iterator[Check]:
    for each in found["objects"]:
        yield damage_check("node", each["id"], each["words"], each.get("worker", ""), each.get("class_name", ""))


def _limits(config: dict[str, Any]) -> Iterator[Check]:
    values = {each["name"]: each["value"] for each in config["settings"]}
    shown = ", ".join(f"{name} {values[name]}" for name in LIMITS if name in values)
    yield Check("node", "ok", f"a call may use: {shown}")
    most = ", ".join(f"{name} {values[name]}" for name in values if name in MOST)
    yield Check("node", "ok", f"a worker may ask for: {most}")
