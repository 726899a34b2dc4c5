"""Options that several commands share, and what they become: a Client, a Project."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from atoll.cli.talk import Failed, tell_findings

if TYPE_CHECKING:
    from atoll.project.model import Project

Command = TypeVar("Command", bound=Callable[..., Any])


def node_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--api, --token, --tenant and --profile; the command gets `client` in their place."""

    @click.option(
        "--api", metavar="URL", help="The node to speak to.  [env: ATOLL_API; default: http://localhost:8080]"
    )
    @click.option("--token", metavar="TEXT", help="A token of that node.  [env: ATOLL_TOKEN]")
    @click.option("--tenant", metavar="NAME", help="Whose workers, for a token of all tenants.  [env: ATOLL_TENANT]")
    @click.option("--profile", metavar="NAME", help="A node named with `atoll profile add`.  [env: ATOLL_PROFILE]")
    @functools.wraps(command)
    def with_client(api: str | None, token: str | None, tenant: str | None, profile: str | None, **rest: object) -> Any:
        from atoll.cli.client import Client
        from atoll.cli.profiles import chosen_target

        client = Client(chosen_target(api, token, tenant, profile))
        try:
            return command(client=client, **rest)
        finally:
            client.close()

    return with_client


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def worker_option(command: Command) -> Command:
    """--worker, by default the one of the project here."""
    help_text = "Name or id of the worker.  [default: the project's here]"
    return click.option("-w", "--worker", metavar="NAME", help=help_text)(command)


def project_options(command: Command) -> Command:
    path = click.argument("path", required=False, type=click.Path(path_type=Path))
    env = click.option("-e", "--env", "environment", default="", metavar="NAME", help="An environment of the config.")
    missing = click.option(
        "--allow-missing-bindings",
        is_flag=True,
        help="Go on without the parts that Atoll does not have; they throw when they are used.",
    )
    return path(env(missing(command)))


def load_project(path: Path | None, environment: str, *, allow_missing: bool = False, for_dev: bool = False) -> Project:
    """The project, with what there is to say about its config said. Raises Failed."""
    from atoll.project.model import ProjectError
    from atoll.project.read import read_project

    try:
        project = read_project(path, environment, for_dev=for_dev)
    except ProjectError as error:
        raise Failed(str(error), error.hint) from None
    tell_findings(project, allow_missing=allow_missing)
    if allow_missing:
        project.go_without()
    return project


def worker_named(worker: str | None, environment: str = "") -> str:
    """The worker that was named, or the one of the project here."""
    if worker:
        return worker
    from atoll.project.model import ProjectError
    from atoll.project.read import read_project

    try:
        return read_project(None, environment).name
    except ProjectError:
        raise Failed("which worker?", "name it with --worker, or call this in the folder of its project") from None


def examples(*lines: str) -> str:
    """The last part of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
