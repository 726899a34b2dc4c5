"""`atoll build`: sources -> a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from atoll.cli.options import WantedProject, json_option, load_one, project_options
from atoll.cli.talk import Failed, echo, paint, say, show_json
from atoll.manifests.every import project_files

if TYPE_CHECKING:
    from atoll.project.built import Built
    from atoll.project.model import Project


def build_project(project: Project) -> Built:
    """Build the project and print its warnings. Raises Failed."""
    from atoll.project.build import Builder
    from atoll.project.model import ProjectError

    with Builder(project, say=say) as builder:
        try:
            built = builder.build()
        except ProjectError as error:
            raise Failed(str(error), error.hint) from None
    for warning in built.warnings:
        say(f"{paint('warning:', fg='yellow')} {warning.frame(project.folder)}")
    return built


def size_of(built: Built) -> str:
    modules = "1 module" if len(built.modules) == 1 else f"{len(built.modules)} modules"
    return f"{modules}, {built.size / 1024:,.1f} KB"


@click.command()
@project_options
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("dist"),
    metavar="DIR",
    show_default=True,
    help="Folder for the bundle.",
)
@json_option
def build(wanted: WantedProject, out: Path, as_json: bool) -> None:
    """Build the project at PATH (a script, a folder or a config file; by default the current folder) into a bundle.

    A bundle is a folder with the modules, the static assets and a manifest.json with the hash of each. `atoll deploy`
    can deploy it without another build.

    \b
    Examples:
      atoll build
      atoll build worker.ts --out bundle
      atoll build --env production && atoll deploy dist
    """
    from atoll.project.bundle import write_bundle
    from atoll.project.model import ProjectError

    project = load_one(wanted)
    built = build_project(project)  # its build step may make the files
    packed = {field: project_files()[field].pack(project, value, out) for field, value in project.files.items()}
    try:
        manifest = write_bundle(project, built, out, packed)
    except ProjectError as error:
        raise Failed(str(error), error.hint) from None
    except OSError as error:
        raise Failed(f"{out} cannot be written: {error.strerror}", "name another folder with --out") from None
    how = "bundled" if built.bundled else "taken as it is"
    say(f"built {paint(project.name, bold=True)}: {size_of(built)}, {how}")
    if as_json:
        import json

        show_json(json.loads(manifest.read_text("utf-8")))
    else:
        echo(out)
