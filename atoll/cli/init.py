"""`atoll init`: a project from a template."""

from __future__ import annotations

import datetime
import re
import shlex
import subprocess
from importlib.resources import files
from pathlib import Path

import click

from atoll.cli.options import json_option
from atoll.cli.talk import echo, fail, paint, say, show_json
from atoll.manifests.every import manifests

# name -> description
TEMPLATES = {
    "hello": "the smallest worker, in JavaScript",
    "typescript": "the same worker in TypeScript, in two files",
    "api": "a JSON API with hono, from npm",
    "chat": "a chat room over WebSockets, with its page",
    **{name: shows for manifest in manifests().values() for name, shows in manifest.templates.items()},
}
# Templates whose source is an example
EXAMPLES = {"chat": "chat"}
IGNORED = "node_modules/\ndist/\n.atoll/\n.dev.vars\n.env\n"
INSTALL_SECONDS = 300


def _listed() -> str:
    return "\n".join(f"  {name:<12} {text}" for name, text in TEMPLATES.items())


@click.command(
    help=f"""Create a project from TEMPLATE in FOLDER (by default a new folder with the template's name).

\b
Templates:
{_listed()}

\b
Examples:
  atoll init
  atoll init typescript my-worker
"""
)
@click.argument(
    "template",
    default="hello",
    metavar="[TEMPLATE]",
    shell_complete=lambda ctx, param, begun: [name for name in TEMPLATES if name.startswith(begun)],
)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--name", metavar="NAME", help="Name of the worker.  [default: the folder's]")
@click.option("--install/--no-install", default=True, help="Fetch the npm packages of the template.  [default: yes]")
@json_option
def init(template: str, folder: Path | None, name: str | None, install: bool, as_json: bool) -> None:
    from atoll.workers import worker_name

    if template not in TEMPLATES:
        fail(f"there is no template `{template}`", f"the templates are {', '.join(TEMPLATES)}")
    folder = folder or Path(template)
    name = name or worker_name(folder.absolute().name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        fail(f"{folder} exists and is not empty", "name another folder")
    written = write_template(template, folder, name)
    if "package.json" in written and install:
        install_packages(folder)
    if as_json:
        show_json({"name": name, "folder": str(folder), "files": written})
        return
    for path in written:
        echo(folder / path)
    say(
        "", f"{paint(name, bold=True)} is in {folder}. Next:", "", f"  cd {shlex.quote(str(folder))}", "  atoll dev", ""
    )


def write_template(template: str, folder: Path, name: str) -> list[str]:
    """Copy the template and rename the project. Returns the paths written, relative to `folder`."""
    written = []
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    source = _source_of(template)
    for path in sorted(source.rglob("*")):
        if not path.is_file():
            continue
        target = folder / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text("utf-8")
        if path.name == "atoll.toml":
            text = re.sub('^name = ".*"$', f'name = "{name}"', text, count=1, flags=re.MULTILINE)
            text = re.sub(
                '^compatibility_date = ".*"$', f'compatibility_date = "{today}"', text, count=1, flags=re.MULTILINE
            )
        target.write_text(text, "utf-8")
        written.append(target.relative_to(folder).as_posix())
    (folder / ".gitignore").write_text(IGNORED, "utf-8")
    return [*written, ".gitignore"]


def _source_of(template: str) -> Path:
    """The folder of a template."""
    for kind, manifest in manifests().items():
        if template in manifest.templates:
            return Path(str(files("atoll.bindings") / kind / "templates" / template))
    if template not in EXAMPLES:
        return Path(str(files("atoll.cli") / "templates" / template))
    from atoll.engine.process.engine_process import built_folders

    found = [folder / "_examples" / EXAMPLES[template] for folder in built_folders()]
    return next((folder for folder in found if folder.is_dir()), None) or fail(
        f"the template {template} is not part of this installation", "run `make setup`"
    )


def install_packages(folder: Path) -> None:
    """Run `npm install` with the npm that comes with Atoll. A failure is only a warning: the project is there."""
    from atoll.project.fetch import npm_command

    say("fetching the project's packages with npm")
    command = [*npm_command(), "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        reason = ran.stderr.strip().splitlines()[:1] if ran.returncode else []
    except subprocess.TimeoutExpired:
        reason = ["npm took too long"]
    if reason:
        say(f"{paint('warning:', fg='yellow')} the project's packages could not be fetched: {reason[0]}")
        say(f"{paint('hint:', fg='cyan')} run `npm install` in {folder} once the network is up")
