"""Options that several commands share, and the Client or Project made from them."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from atoll.cli.talk import Failed, say, tell_findings

if TYPE_CHECKING:
    from atoll.project.model import Project

Command = TypeVar("Command", bound=Callable[..., Any])


def node_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--api, --token, --tenant and --profile. The command gets a `client` in their place."""

    @click.option("--api", metavar="URL", help="Address of the node.  [env: ATOLL_API; default: http://localhost:8080]")
    @click.option(
        "--token",
        metavar="TEXT",
        help="A token of that node; `-` prompts for it or reads a line of stdin.  [env: ATOLL_TOKEN]",
    )
    @click.option(
        "--tenant", metavar="NAME", help="The tenant to act for, with a token of all tenants.  [env: ATOLL_TENANT]"
    )
    @click.option("--profile", metavar="NAME", help="A node named with `atoll profile add`.  [env: ATOLL_PROFILE]")
    @functools.wraps(command)
    def with_client(api: str | None, token: str | None, tenant: str | None, profile: str | None, **rest: object) -> Any:
        from atoll.cli.ask import read_token
        from atoll.cli.client import Client
        from atoll.cli.profiles import chosen_target

        for option, given in {"--api": api, "--token": token, "--tenant": tenant, "--profile": profile}.items():
            if given is not None and not given.strip():  # usually an unset shell variable
                raise Failed(f"{option} is empty", "leave it out, or give it a value")
        if token == "-":
            token = read_token()
        client = Client(chosen_target(api, token, tenant, profile))
        try:
            return command(client=client, **rest)
        finally:
            client.close()

    return with_client


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def worker_option(command: Command) -> Command:
    """--worker, by default the current project's worker."""
    help_text = "Name or id of the worker.  [default: the current project's]"
    return click.option("-w", "--worker", metavar="NAME", help=help_text)(command)


class WantedProject(NamedTuple):
    """The project of a command, and what the command line overrides in it."""

    path: Path | None = None
    config: Path | None = None
    others: tuple[Path, ...] = ()  # more configs, for `atoll dev` and `atoll types`
    environment: str = ""
    name: str | None = None
    variables: tuple[str, ...] = ()
    allow_missing: bool = False
    root: Path | None = None

    def read(self, *, for_dev: bool = False) -> Project:
        """Raises ProjectError."""
        from atoll.project.model import ProjectError
        from atoll.project.read import read_project

        project = read_project(self.path, self.environment, config=self.config, for_dev=for_dev, as_built=True)
        project.name = self.named(project.name)
        project.root = self.root
        project.vars |= self.given_variables()
        for binding in project.bindings:
            if binding["name"] in project.vars:
                raise ProjectError(
                    f"--var sets {binding['name']}, which is a binding in the config", "give one of them another name"
                )
        return project

    def named(self, name: str) -> str:
        """The name given with --name, or else `name`. Raises ProjectError."""
        from atoll.project.model import ProjectError

        if self.name == "":
            raise ProjectError("--name is empty", "leave it out, or write it like --name hello")
        return self.name or name

    def given_variables(self) -> dict[str, str]:
        """The variables of --var. Raises ProjectError."""
        from atoll.project.model import ProjectError

        pairs = [(variable, variable.partition("=")) for variable in self.variables]
        for variable, (name, equals, _) in pairs:
            if not equals or not name:
                hint = "write it like --var GREETING=hello; --var GREETING= sets an empty text"
                raise ProjectError(f"--var is {variable!r}", hint)
        return {name: value for _, (name, _, value) in pairs}


def config_option(command: Command) -> Command:
    return click.option(
        "-c",
        "--config",
        "configs",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Config of the project; `dev` and `types` take one per worker.  [default: nearest, from PATH upwards]",
    )(command)


def project_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """PATH, --config, --env, --name, --var and --allow-missing-bindings. The command gets `wanted` in their place."""

    @click.argument("path", required=False, type=click.Path(path_type=Path))
    @config_option
    @click.option("-e", "--env", "environment", default="", metavar="NAME", help="An environment of the config.")
    @click.option("--name", metavar="NAME", help="Name of the worker, instead of the config's.")
    @click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="Set a variable. Repeatable.")
    @click.option(
        "--root",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        metavar="DIR",
        help="Folder that all files of the project must be in.  [default: the root of its repository or workspace]",
    )
    @click.option(
        "--allow-missing-bindings",
        is_flag=True,
        help="Go on without bindings that Atoll does not have; they throw when they are used.",
    )
    @functools.wraps(command)
    def with_wanted(
        path: Path | None,
        configs: tuple[Path, ...],
        environment: str,
        name: str | None,
        variables: tuple[str, ...],
        root: Path | None,
        allow_missing_bindings: bool,
        **rest: object,
    ) -> Any:
        first = configs[0] if configs else None
        wanted = WantedProject(path, first, configs[1:], environment, name, variables, allow_missing_bindings, root)
        return command(wanted=wanted, **rest)

    return with_wanted


def load_project(wanted: WantedProject, *, for_dev: bool = False) -> Project:
    """Read the project and print the findings about its config. Raises Failed."""
    from atoll.project.model import ProjectError

    try:
        project = wanted.read(for_dev=for_dev)
    except ProjectError as error:
        raise Failed(str(error), error.hint) from None
    tell_findings(project, allow_missing=wanted.allow_missing)
    if wanted.allow_missing:
        project.go_without()
    return project


def load_one(wanted: WantedProject) -> Project:
    """`load_project` for a command that takes one project. Says which config a script named in PATH uses."""
    if wanted.others:
        raise Failed(
            "--config is given more than once",
            "name one config: only `atoll dev` and `atoll types` take several workers",
        )
    project = load_project(wanted)
    if project.is_entry_named and project.config is not None and project.main is not None:
        say(f"{shown_path(project.main)} replaces `main` of {shown_path(project.config)}")
    return project


def shown_path(path: Path) -> str:
    """The path relative to the current folder, if that is short."""
    import os

    relative = os.path.relpath(path)
    return relative if relative.count("..") <= 3 else str(path)


def worker_named(worker: str | None, environment: str = "") -> str:
    """The worker that was named, or the current project's."""
    if worker:
        return worker
    from atoll.project.model import ProjectError
    from atoll.project.read import read_project

    try:
        return read_project(None, environment).name
    except ProjectError:
        hint = f"name it: `{_with_worker()}`; or run the command in the worker's project"
        raise Failed("no worker is named, and there is no project here", hint) from None


def _with_worker() -> str:
    """The current command line, with a worker named as this command takes it."""
    context = click.get_current_context()
    takes_option = any("--worker" in parameter.opts for parameter in context.command.params)
    words = [context.command_path]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if isinstance(parameter, click.Argument) and value is not None:
            words += map(shlex.quote, map(str, value if isinstance(value, tuple) else (value,)))
    return " ".join([*words, *(["--worker"] if takes_option else []), "NAME"])


def examples(*lines: str) -> str:
    """The last part of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
