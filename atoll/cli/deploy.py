"""`atoll deploy`: build a project, or take a bundle as it is, and make it the version a node serves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.build import build_project, size_of
from atoll.cli.options import json_option, load_project, node_options, project_options
from atoll.cli.talk import Failed, fail, paint, say, show_json

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.command()
@project_options
@click.option("--name", metavar="NAME", help="Deploy under another name.")
@click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="Set a variable; may be given again.")
@click.option("-m", "--message", default="", metavar="TEXT", help="A word about this version.")
@click.option("--tag", default="", metavar="TEXT", help="A name for this version, such as a commit.")
@click.option("--dry-run", is_flag=True, help="Build and check, but deploy nothing.")
@node_options
@json_option
def deploy(
    client: Client,
    path: Path | None,
    environment: str,
    allow_missing_bindings: bool,
    name: str | None,
    variables: tuple[str, ...],
    message: str,
    tag: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Deploy the project at PATH (a script, a folder or a config file; by default here), or the bundle at PATH.

    The new version takes over when the node has loaded it: calls that run finish with the old one, none is lost, and a
    worker that does not start changes nothing. Secrets stay. The address is printed.

    \b
    Examples:
      atoll deploy
      atoll deploy worker.ts --name hello
      atoll deploy --env production --message "new prices"
      atoll deploy dist --profile home
    """
    body, secrets = _body_of(path, environment, allow_missing=allow_missing_bindings)
    if name:
        body["name"] = name
    for variable in variables:
        key, equals, value = variable.partition("=")
        if not equals:
            fail(f"--var is {variable!r}", "write it like --var GREETING=hello")
        body.setdefault("env", {})[key] = value
    if message:
        body["message"] = message
    if tag:
        body["tag"] = tag
    if dry_run:
        say("nothing was deployed: --dry-run")
        if as_json:
            show_json({key: value for key, value in body.items() if key not in ("modules", "source_maps")})
        return
    worker = send(client, body, secrets)
    version = worker["version"]
    text = f"deployed {paint(worker['name'], bold=True)}, version {version['number']}"
    say(f"{text}, started in {version['startup_time_ms']:.1f} ms")
    if as_json:
        show_json(worker)
    else:
        click.echo(worker["url"])


def _body_of(path: Path | None, environment: str, *, allow_missing: bool) -> tuple[dict[str, Any], tuple[str, ...]]:
    from atoll.project.bundle import deploy_body, is_bundle, read_bundle
    from atoll.project.model import ProjectError

    if path is not None and is_bundle(path):
        if environment:
            fail("a bundle was built for its environment", "leave out --env, or build again with it")
        try:
            return read_bundle(path)
        except ProjectError as error:
            raise Failed(str(error), error.hint) from None
    project = load_project(path, environment, allow_missing=allow_missing)
    built = build_project(project)
    say(f"built {paint(project.name, bold=True)}: {size_of(built)}")
    return deploy_body(project.settings(), built.main, built.modules), project.required_secrets


def send(client: Client, body: dict[str, Any], secrets: tuple[str, ...] = ()) -> Any:
    """Make a new version of the worker, or the worker itself."""
    from atoll.cli.client import Refusal, segment

    where = f"/api/workers/{segment(body['name'])}"
    try:
        if secrets:
            _refuse_missing_secrets(client, where, secrets)
        return client.put(where, body)
    except Refusal as refusal:
        if refusal.status != 404:
            raise
    if secrets:
        say(f"{paint('warning:', fg='yellow')} the worker needs the secrets {', '.join(secrets)}: `atoll secret put`")
    return client.post("/api/workers", body)


def _refuse_missing_secrets(client: Client, where: str, secrets: tuple[str, ...]) -> None:
    there = {secret["name"] for secret in client.get(f"{where}/secrets")["secrets"]}
    missing = [name for name in secrets if name not in there]
    if missing:
        fail(f"the worker lacks the secrets {', '.join(missing)}", f"set each: atoll secret put {missing[0]}")
