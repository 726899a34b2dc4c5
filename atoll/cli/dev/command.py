"""`atoll dev`, the command."""

from __future__ import annotations

import gc
import re
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from atoll.cli.dev import CONTROL_HOST
from atoll.cli.dev.first import Begun, FirstBuild, first_engine
from atoll.cli.interrupt import Interrupt
from atoll.cli.options import WantedProject, json_option, load_project, project_options
from atoll.cli.talk import Failed, paint, say
from atoll.config import Settings
from atoll.errors import StartError
from atoll.project.model import Project

DATA = Path(".atoll") / "dev"
DEFAULT_PORT = 8787
TRIED_PORTS = 50
# Addresses of a developer's backends. Not link-local: clouds serve credentials there.
PRIVATE_NETWORK = (
    "127.0.0.0/8",
    "0.0.0.0",
    "::1",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "fc00::/7",
)


@click.command()
@project_options
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help=f"Port to listen on; 0 takes any free one.  [default: {DEFAULT_PORT}]",
)
@click.option("--host", metavar="TEXT", help="Address to listen on.  [default: localhost]")
@click.option(
    "--private-network/--no-private-network",
    default=True,
    help="Let fetch() reach 127.0.0.1 and private addresses, such as local backends.  [default: yes]",
)
@json_option
def dev(wanted: WantedProject, port: int | None, host: str | None, private_network: bool, as_json: bool) -> None:
    """Run the project at PATH (a script, a folder or a config file; by default the current folder), and reload it when
    its files change.

    To run several workers together, give --config for each. The first answers on the port; all of them answer on
    NAME.localhost and share service bindings, queues and KV namespaces.

    It uses the engine and the limits of `atoll serve`. A saved file is live within milliseconds and no request is lost.
    Stored data is kept in .atoll/dev. Errors are shown with the code around them, here and in the browser, until they
    are fixed. Each call is one line: method, path, status, CPU time, wall time, cold or warm.

    \b
    Keys:
      o  open the worker in the browser
      r  build and load it again
      t  run its crons now
      q  quit, like Ctrl-C

    \b
    Examples:
      atoll dev
      atoll dev worker.ts --port 3000
      atoll dev --env staging
      atoll dev -c shop/wrangler.toml -c auth/wrangler.toml
      curl "http://localhost:8787/cdn-cgi/handler/scheduled?cron=*+*+*+*+*"
    """
    began = time.monotonic()
    gc.disable()  # until it serves: nothing that is imported is ever freed
    chosen = each_of(wanted)
    for each in chosen:
        _build_with_tool(each)
    clock = time.time()
    projects = [load_project(each, for_dev=True) for each in chosen]
    _refuse_same_names(projects)
    project = projects[0]
    asked_port = port if port is not None else project.dev_port
    settings = Settings(
        host=host or project.dev_ip,
        port=DEFAULT_PORT if asked_port is None else asked_port,
        data=(project.home or project.folder) / DATA,
        control_hosts=(CONTROL_HOST,),
        engines=1,  # one developer needs one engine; a second only slows the start
        spares=2,
        drain_seconds=2.0,
        egress_allow=PRIVATE_NETWORK if private_network else (),
        worker_clock="live",  # for workers with that switch: all code here is the developer's own
    )
    with Interrupt() as interrupt, ExitStack() as stack:
        builds = [stack.enter_context(FirstBuild(each, clock)) for each in projects]
        engine = stack.enter_context(first_engine(settings))
        from atoll.cli.dev.run import run_session  # the whole node: takes 0.25 s, while the build and the engine start

        try:
            if asked_port is None:
                settings = replace(settings, port=free_port(settings.host))
            run_session(chosen, settings, Begun(began, builds, engine, interrupt), as_json=as_json)
        except StartError as error:
            raise _told(error) from None


def each_of(wanted: WantedProject) -> list[WantedProject]:
    """One project per worker. --env applies to the other workers only if their config has that environment."""
    from atoll.project.model import ProjectError
    from atoll.project.read import has_environment

    found = [wanted._replace(others=())]
    for config in wanted.others:
        environment = wanted.environment
        try:
            if environment and not has_environment(config, environment):
                say(f"{paint('note:', fg='cyan')} {config} has no environment `{environment}`: its top level is used")
                environment = ""
        except ProjectError as error:
            raise Failed(str(error), error.hint) from None
        found.append(
            WantedProject(config=config, environment=environment, allow_missing=wanted.allow_missing, root=wanted.root)
        )
    return found


def _build_with_tool(wanted: WantedProject) -> None:
    """Vite and frameworks build the project before it can be read. Raises Failed."""
    from atoll.project.build import Builder
    from atoll.project.model import ProjectError

    try:
        project = wanted.read(for_dev=True)
        if project.tool is not None:
            say(f"{project.tool.name} builds the project: {project.tool.command}")
            with Builder(project) as builder:
                builder.run_tool()
    except ProjectError as error:
        raise Failed(str(error), error.hint) from None


def _refuse_same_names(projects: list[Project]) -> None:
    names = [project.name for project in projects]
    for i, project in enumerate(projects):
        if project.name in names[:i]:
            first = projects[names.index(project.name)]
            where = f"{first.config or first.main} and {project.config or project.main}"
            raise Failed(f"two workers are named `{project.name}`: {where}", "give each a `name` of its own")


def _told(error: StartError) -> Failed:
    """The reason why the node does not start, reworded for a project."""
    if found := re.search(r"another Atoll \(process (\w+)\)", str(error)):
        return Failed(
            f"`atoll dev` already runs this project, as process {found[1]}", "use that session, or stop it first"
        )
    return Failed(str(error), error.hint.replace("atoll serve", "atoll dev"))


def free_port(host: str) -> int:
    """The default port, or the next free one. Prints why if it is not the default."""
    from atoll.front.server import listen

    reason: StartError | None = None
    for port in range(DEFAULT_PORT, DEFAULT_PORT + TRIED_PORTS):
        try:
            listen(host, port).close()
        except StartError as error:
            reason = reason or error
            continue
        if reason is not None:
            say(f"{paint('note:', fg='cyan')} {reason}, so this session uses {port}")
        return port
    assert reason is not None
    raise reason
