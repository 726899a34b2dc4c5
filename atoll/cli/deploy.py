"""`atoll deploy`: build a project, or take a bundle, and deploy it to a node."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.build import build_project, size_of
from atoll.cli.options import WantedProject, json_option, load_one, node_options, project_options
from atoll.cli.rollback_rule import rollback_options, say_rule
from atoll.cli.talk import Failed, echo, fail, paint, say, show_json
from atoll.manifests.every import project_files

if TYPE_CHECKING:
    from atoll.cli.client import Client
    from atoll.project.model import Project


@click.command()
@project_options
@click.option("-m", "--message", default="", metavar="TEXT", help="A message to store with this version.")
@click.option("--tag", default="", metavar="TEXT", help="A tag for this version, such as a commit.")
@click.option("--dry-run", is_flag=True, help="Build and check, but deploy nothing.")
@rollback_options
@node_options
@json_option
def deploy(
    client: Client,
    wanted: WantedProject,
    message: str,
    tag: str,
    dry_run: bool,
    rollback: dict[str, Any] | None,
    as_json: bool,
) -> None:
    """Deploy the project at PATH (a script, a folder or a config file; by default the current folder), or a bundle.

    The new version gets traffic once the node has loaded it. Running calls finish with the old version and none is
    lost. If the new version does not start, the old one stays. Secrets are kept. Prints the worker's address.

    \b
    Examples:
      atoll deploy
      atoll deploy worker.ts --name hello
      atoll deploy --env production --message "new prices"
      atoll deploy dist --profile home
      atoll deploy --rollback-above 5% --rollback-window 2m
    """
    source, body, secrets = body_of(wanted)
    if message:
        body["message"] = message
    if tag:
        body["tag"] = tag
    if rollback is not None:
        body["rollback"] = rollback
    if dry_run:
        say("nothing was deployed: --dry-run")
        if as_json:
            show_json({key: value for key, value in body.items() if key not in ("modules", "source_maps")})
        return
    send_files(client, source, body)
    worker = send(client, body, secrets)
    version = worker["version"]
    text = f"deployed {paint(worker['name'], bold=True)}, version {version['number']}"
    say(f"{text}, started in {version['startup_time_ms']:.1f} ms")
    if "rollback" in body:
        _say_rule_of(client, worker["name"])
    if as_json:
        show_json(worker)
    else:
        echo(worker["url"])


def send_files(client: Client, source: Project | Path, body: dict[str, Any]) -> None:
    """Upload the files of a project or a bundle that the node does not have; `body` then names them."""
    if isinstance(source, Path):
        for field, files in project_files().items():
            if body.get(field) is not None:
                body[field] = files.send_packed(client, source, body[field])
        return
    for field, value in source.files.items():
        body[field] = project_files()[field].send(client, source, value)


def body_of(wanted: WantedProject) -> tuple[Project | Path, dict[str, Any], tuple[str, ...]]:
    """The project, or the folder of a bundle; the body of its deploy; the secrets that it requires."""
    from atoll.project.bundle import deploy_body, is_bundle

    if wanted.path is not None and is_bundle(wanted.path):
        folder = wanted.path if wanted.path.is_dir() else wanted.path.parent
        return folder, *_bundled_body(wanted, wanted.path)
    project = load_one(wanted)
    built = build_project(project)
    if built.modules:
        say(f"built {paint(project.name, bold=True)}: {size_of(built)}")
    return project, deploy_body(project.settings(), built.main, built.modules), project.required_secrets


def _bundled_body(wanted: WantedProject, path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    from atoll.project.bundle import read_bundle
    from atoll.project.model import ProjectError

    if wanted.environment or wanted.config is not None:
        fail(
            "the config and environment of a bundle were chosen when it was built",
            "leave out --env and --config, or build it again with them",
        )
    try:
        body, secrets = read_bundle(path)
        body["name"] = wanted.named(body["name"])
        if variables := wanted.given_variables():
            body["env"] = {**body.get("env", {}), **variables}
    except ProjectError as error:
        raise Failed(str(error), error.hint) from None
    return body, secrets


def send(client: Client, body: dict[str, Any], secrets: tuple[str, ...] = ()) -> Any:
    """Create the worker, or a new version of it."""
    from atoll.cli.client import ApiRefusal, segment

    where = f"/api/workers/{segment(body['name'])}"
    try:
        if secrets:
            _refuse_missing_secrets(client, where, secrets)
        return client.put(where, body)
    except ApiRefusal as refusal:
        if refusal.status != 404:
            raise
    if secrets:
        say(f"{paint('warning:', fg='yellow')} the worker needs the secrets {', '.join(secrets)}: `atoll secret put`")
    if body.pop("rollback", None) is not None:
        say(f"{paint('warning:', fg='yellow')} the first deployment has nothing to return to: no rollback rule is set")
    return client.post("/api/workers", body)


def _say_rule_of(client: Client, name: str) -> None:
    from atoll.cli.client import segment

    say_rule(client.get(f"/api/workers/{segment(name)}/deployments", limit=1)["deployments"][0])


def _refuse_missing_secrets(client: Client, where: str, secrets: tuple[str, ...]) -> None:
    there = {secret["name"] for secret in client.all(f"{where}/secrets", "secrets")}
    missing = [name for name in secrets if name not in there]
    if missing:
        fail(f"the worker lacks the secrets {', '.join(missing)}", f"set each: atoll secret put {missing[0]}")
