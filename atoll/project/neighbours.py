"""Workers that a project's service bindings name: which the session lacks, and where their configs may be."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from atoll.manifests.config_fields import Finding, FindingLevel
from atoll.manifests.every import config_names, manifests, triggers
from atoll.project.files import config_in, read_config
from atoll.project.model import Project, ProjectError

MOST_LOOKED_AT = 100


def missing_services(project: Project, running: Collection[str], command: str) -> list[Finding]:
    """A finding for each worker that a binding or a tail consumer names and that does not run beside this one.

    `command` runs one more worker, by its config FILE.
    """
    asked = list(_asked(project))
    findings = []
    for field, service, name in asked:
        if service in running:
            continue
        config = neighbour(project.folder, service)
        hint = command if config is None else command.replace("FILE", os.path.relpath(config))
        who = f"{name}: the" if name else "the"
        what = "calls to it fail" if name else "it gets no events"
        text = f"{who} worker `{service}` is not part of this session, so {what}"
        findings.append(Finding(FindingLevel.WARNING, field, text, hint))
    return findings


def _asked(project: Project) -> Iterator[tuple[str, str, str]]:
    """(field of the config, worker, name in env) of each entry that names another worker."""
    for entry in project.bindings:
        manifest = manifests().get(entry["type"])
        if manifest is not None and manifest.names_worker is not None:
            yield config_names(entry["type"])[0], manifest.names_worker(entry), entry["name"]
    for field, entries in project.triggers.items():
        names_worker = triggers()[field].names_worker
        if names_worker is not None:
            yield from ((field, names_worker(entry), "") for entry in entries)


def neighbour(folder: Path, name: str) -> Path | None:
    """The config of the worker of that name, in a folder beside or below this one."""
    for config in _configs_near(folder):
        try:
            if read_config(config).get("name") == name:
                return config
        except ProjectError:  # errors in another project's config do not matter here
            continue
    return None


def _configs_near(folder: Path) -> Iterator[Path]:
    for place in (folder.parent, folder):
        try:
            with os.scandir(place) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
        except OSError:
            continue
        for name in names[:MOST_LOOKED_AT]:
            try:
                found = config_in(place / name)
            except (ProjectError, OSError):
                continue
            if found is not None:
                yield found
