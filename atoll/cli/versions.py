"""`atoll versions`, `atoll deployments`, `atoll rollback`: the versions of a worker, and which of them get traffic."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.options import (
    WantedProject,
    json_option,
    node_options,
    project_options,
    worker_named,
    worker_option,
)
from atoll.cli.rollback_rule import rollback_options, say_rule, shown_rule
from atoll.cli.talk import done, echo, fail, paint, say, show_json, show_table, shown_time
from atoll.cli.version_secrets import tell_lost_secrets, version_secret
from atoll.cli.workers import ListsByDefault

if TYPE_CHECKING:
    from atoll.cli.client import Client

VERSION = re.compile(r"[0-9]+|version_[a-z0-9]{12}")
PERCENTAGE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,2})?)%?")


@click.group(cls=ListsByDefault)
def versions() -> None:
    """List, show, upload and deploy versions of a worker, and change their secrets. Without a command: list.

    A deployment gives the traffic of a worker to one version, or splits it between several.

    \b
    Examples:
      atoll versions
      atoll versions upload --message "new prices"
      atoll versions deploy 5@10% 4@90%
      atoll versions deploy 5 --rollback-above 5%
    """


assert isinstance(versions, ListsByDefault)
versions.takes_argument = True
versions.add_command(version_secret)


@versions.command("list")
@click.argument("worker", required=False)
@node_options
@json_option
def list_versions(client: Client, worker: str | None, as_json: bool) -> None:
    """List the versions of WORKER (by default the current project's), newest first, with their traffic."""
    from atoll.cli.client import segment

    found = client.all(f"/api/workers/{segment(worker_named(worker))}/versions", "versions")
    if as_json:
        show_json(found)
        return
    rows = [
        (
            f"{version['percentage']:g}%" if version["active"] else "",
            version["number"],
            version["id"],
            shown_time(version["created_at"]),
            version["author"],
            version["tag"],
            version["message"].partition("\n")[0],
        )
        for version in found
    ]
    show_table(("traffic", "version", "id", "created", "by", "tag", "message"), rows, "no versions")


@versions.command("view")
@click.argument("version")
@worker_option
@node_options
@json_option
def view_version(client: Client, version: str, worker: str | None, as_json: bool) -> None:
    """Show one version: its modules with their hashes, routes, variables, bindings. VERSION is a number or an id."""
    from atoll.cli.client import segment

    found = client.get(f"/api/workers/{segment(worker_named(worker))}/versions/{segment(version)}")
    if as_json:
        show_json(found)
        return
    modules = [
        f"{module['path']} ({module['bytes']:,} bytes, sha256 {module['sha256']})" for module in found["modules"]
    ]
    rows = [(name, _shown(value)) for name, value in found.items() if name != "modules"]
    show_table(("field", "value"), [*rows, *(("module", module) for module in modules)], "")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={inner}" for name, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@versions.command("upload")
@project_options
@click.option("-m", "--message", default="", metavar="TEXT", help="A message to store with this version.")
@click.option("--tag", default="", metavar="TEXT", help="A tag for this version, such as a commit.")
@click.option("--preview-alias", default="", metavar="NAME", help="A name for the host of its preview: NAME-WORKER.")
@node_options
@json_option
def upload_version(
    client: Client, wanted: WantedProject, message: str, tag: str, preview_alias: str, as_json: bool
) -> None:
    """Build the project at PATH and store it as a new version that gets no traffic.

    The node starts the version once, and refuses one that does not start. `atoll versions deploy` gives it traffic.
    The worker must exist: `atoll deploy` creates it. Prints the address of the version's preview, if it has one.
    """
    from atoll.cli.client import ApiRefusal, segment
    from atoll.cli.deploy import body_of, send_files

    source, body, _ = body_of(wanted)
    send_files(client, source, body)
    body |= {name: text for name, text in (("message", message), ("tag", tag)) if text}
    path = f"/api/workers/{segment(body['name'])}/versions"
    try:
        before = client.get(path, limit=1)["versions"][0]
        found = client.call("POST", path, body, query={"alias": preview_alias})
    except ApiRefusal as refusal:
        if refusal.status == 404:
            fail(f"there is no worker `{body['name']}` yet", "create it with its first version: atoll deploy")
        raise
    tell_lost_secrets(client, body["name"], before, found)
    if as_json:
        show_json(found)
        return
    text = f"stored version {found['number']} of {paint(body['name'], bold=True)} ({found['id']}), without traffic"
    say(text, f"{paint('hint:', fg='cyan')} atoll versions deploy {found['number']}@10% gives it a part of the traffic")
    for url in (*found["alias_urls"], found["preview_url"]):
        if url:
            echo(url)
            return
    say("it has no preview: `preview_urls` of the node, the active version or this version is off")


@versions.command("unalias")
@click.argument("alias")
@worker_option
@node_options
@json_option
def delete_alias(client: Client, alias: str, worker: str | None, as_json: bool) -> None:
    """Delete the alias of a preview. Its host stays reserved for a while."""
    from atoll.cli.client import segment

    client.delete(f"/api/workers/{segment(worker_named(worker))}/aliases/{segment(alias)}")
    done(f"deleted the alias {alias}", as_json, deleted=alias)


@versions.command("deploy")
@click.argument("shares", nargs=-1, metavar="[VERSION[@PERCENTAGE]]...")
@worker_option
@click.option("-m", "--message", default="", metavar="TEXT", help="Why.")
@click.option(
    "--force",
    is_flag=True,
    help="Deploy an older version even if secrets have changed since, or a resource of its bindings is gone.",
)
@rollback_options
@node_options
@json_option
def deploy_versions(
    client: Client,
    shares: tuple[str, ...],
    worker: str | None,
    message: str,
    force: bool,
    rollback: dict[str, Any] | None,
    as_json: bool,
) -> None:
    """Give the traffic of a worker to one version, or split it between several.

    VERSION is a number or an id; without one, the newest version gets all traffic. Versions without a percentage share
    what is left. If every version has one, they must sum to 100; the only exception is a single version, which takes
    its part from the version that has all traffic now.

    With --rollback-above the node watches the versions that get more traffic than before. If too many of their requests
    fail, it returns to the newest earlier deployment without them. `atoll deployments` shows it, with the reason.
    """
    from atoll.cli.client import segment

    name = worker_named(worker)
    where = f"/api/workers/{segment(name)}"
    wanted = _parsed(shares)
    if not wanted:
        wanted = [(client.get(f"{where}/versions", limit=1)["versions"][0]["number"], None)]
    if len(wanted) == 1 and wanted[0][1] not in (None, 100):
        wanted.append((_version_in_place(client, where, wanted[0][0]), None))
    body = {"versions": _filled(wanted), "message": message, "force": force}
    if rollback is not None:
        body["rollback"] = rollback
    found = client.post(f"{where}/deployments", body)
    if as_json:
        show_json(found)
        return
    parts = ", ".join(f"version {share['number']}: {share['percentage']:g}%" for share in found["versions"])
    say(f"{paint(name, bold=True)} serves {parts}")
    say_rule(found)
    echo(client.get(where)["url"])


def _parsed(shares: tuple[str, ...]) -> list[tuple[str, float | None]]:
    found: list[tuple[str, float | None]] = []
    for text in shares:
        version, at, percentage = text.partition("@")
        number = PERCENTAGE.fullmatch(percentage)
        if not VERSION.fullmatch(version) or (at and not number):
            fail(f"`{text}` is not a version with a percentage", "write it like 5, 5@10% or version_…@10%")
        found.append((version, float(number[1]) if number else None))
    return found


def _version_in_place(client: Client, where: str, new: str) -> str:
    """The version that has all traffic now, to keep what a new one does not take."""
    traffic = client.get(where)["traffic"]
    if len(traffic) > 1:
        fail("the traffic is split already, so one percentage is not enough", f"name every version: {new}@10% 1@90%")
    if new in (traffic[0]["id"], str(traffic[0]["number"])):
        fail("this version has all traffic now", "name the version that gets the rest as well")
    return str(traffic[0]["number"])


def _filled(wanted: list[tuple[str, float | None]]) -> list[dict[str, object]]:
    """Versions without a percentage share the rest, to hundredths of a percent; the first gets what remains."""
    open_ones = [version for version, percentage in wanted if percentage is None]
    rest = 10_000 - sum(round(percentage * 100) for _, percentage in wanted if percentage is not None)
    each, left = divmod(max(rest, 0), len(open_ones) or 1)
    shares: list[dict[str, object]] = []
    for version, percentage in wanted:
        if percentage is None:
            percentage, left = (each + left) / 100, 0
        shares.append({"version": int(version) if str(version).isdigit() else version, "percentage": percentage})
    return shares


@click.command()
@click.argument("worker", required=False)
@node_options
@json_option
def deployments(client: Client, worker: str | None, as_json: bool) -> None:
    """List the deployments of WORKER (by default the current project's), newest first. The first is the current one.

    \b
    Examples:
      atoll deployments hello
      atoll deployments --json
    """
    from atoll.cli.client import segment

    found = client.all(f"/api/workers/{segment(worker_named(worker))}/deployments", "deployments")
    if as_json:
        show_json(found)
        return
    rows = [
        (
            "*" if each["active"] else "",
            shown_time(each["created_at"]),
            ", ".join(f"{share['number']}: {share['percentage']:g}%" for share in each["versions"]),
            each["source"],
            each["author"],
            shown_rule(each),
            each["message"].partition("\n")[0],
        )
        for each in found
    ]
    show_table(("", "deployed", "versions", "by way of", "by", "rollback", "message"), rows, "no deployments")


@click.command()
@click.argument("words", nargs=-1, metavar="[WORKER] [VERSION]")
@worker_option
@click.option("-m", "--message", default="", metavar="TEXT", help="Why.")
@click.option(
    "--force",
    is_flag=True,
    help="Roll back even if its secrets have changed since, or a resource of its bindings is gone.",
)
@node_options
@json_option
def rollback(
    client: Client, words: tuple[str, ...], worker: str | None, message: str, force: bool, as_json: bool
) -> None:
    """Activate an older version of WORKER (by default the current project's).

    VERSION is a number or an id; the default is the version before the active one. While traffic is split, the default
    is the version that last had all of it. As with a deploy, running calls finish with the version they started on. A
    single argument that is a number or a version's id is VERSION.

    \b
    Examples:
      atoll rollback
      atoll rollback hello
      atoll rollback hello 3 --message "prices were wrong"
      atoll rollback 3 --worker hello
    """
    from atoll.cli.client import segment

    worker, version = _worker_and_version(words, worker)
    name = worker_named(worker)
    body = {"message": message, "force": force, **({"version": version} if version else {})}
    found = client.post(f"/api/workers/{segment(name)}/rollback", body)
    if as_json:
        show_json(found)
    else:
        say(f"{paint(found['name'], bold=True)} is back on version {found['version']['number']}")
        echo(found["url"])


def _worker_and_version(words: tuple[str, ...], worker: str | None) -> tuple[str | None, str | None]:
    if len(words) > (1 if worker else 2):
        raise click.UsageError(f"unexpected argument `{words[-1]}`")
    if worker or (len(words) == 1 and VERSION.fullmatch(words[0])):
        return worker, words[0] if words else None
    return words[0] if words else None, words[1] if len(words) == 2 else None
