"""The project part of `atoll doctor`: its config, its build, what its code uses, and whether an engine loads it."""

from __future__ import annotations

import asyncio
import datetime
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from atoll.cli.options import WantedProject

if TYPE_CHECKING:
    from atoll.manifests.config_fields import Finding
    from atoll.project.built import Built
    from atoll.project.model import Project


class Check(NamedTuple):
    """One line of the report."""

    about: str
    level: str
    text: str
    hint: str = ""


class Trial:
    """An engine that is started once, to load the project, if there is one, and to check the sandbox."""

    def __init__(self, *, starts: bool) -> None:
        self.starts = starts
        self.layers: tuple[tuple[str, ...], tuple[str, ...]] | None = None  # held and missing; None: no engine started
        self.error: Exception | None = None
        self.refusal: Exception | None = None  # why the engine refused the project
        self._has_run = False

    def run(self, worker: dict[str, Any] | None = None) -> None:
        """Load `worker`, the body of a deploy. Does nothing when called again."""
        if self._has_run:
            return
        self._has_run = True
        logging.disable(logging.WARNING)  # the report contains it
        try:
            asyncio.run(self._run(worker))
        except Exception as error:  # the report shows any error
            self.error = error

    async def _run(self, worker: dict[str, Any] | None) -> None:
        from atoll.embed import ApiRefused, Atoll

        async with Atoll(engines=1, spares=0, drain_seconds=0.1) as atoll:
            layers = atoll.node.supervisor.layers
            self.layers = (layers.held, layers.missing)
            if worker is not None:
                try:
                    await atoll.deploy(**worker)
                except ApiRefused as refused:
                    self.refusal = refused


def project_checks(wanted: WantedProject, trial: Trial) -> Iterator[Check]:
    from atoll.manifests.every import project_files
    from atoll.project.build import Builder
    from atoll.project.model import ProjectError

    try:
        project = wanted.read()
    except ProjectError as error:
        level = "note" if wanted == WantedProject() and "there is no project" in str(error) else "error"
        yield Check("project", level, str(error), error.hint)
        return
    where = project.config or project.main
    entry = f", entry {project.main}" if project.config is not None and project.is_entry_named else ""
    yield Check("project", "ok", f"{project.name}, from {where}{entry}, as of {project.compatibility_date}")
    yield from map(_check, project.findings)
    for binding in project.bindings:
        target = next((str(value) for key, value in binding.items() if key not in ("type", "name")), "")
        yield Check("project", "ok", f"env.{binding['name']}: {binding['type']} {target}".rstrip())
    for field, value in project.files.items():
        text, findings = project_files()[field].check(project, value)
        yield from map(_check, findings)
        if text:
            yield Check("project", "ok", text)
    yield from _refusals(project)
    with Builder(project) as builder:
        try:
            built = builder.build()
        except ProjectError as error:
            yield Check("project", "error", str(error), error.hint)
            return
        how = f"bundled, since {builder.why_bundled}" if built.bundled else "taken as it is"
    if not built.modules:
        yield Check("project", "ok", "has no code: the node serves its files")
        return
    yield Check("project", "ok", f"builds: {built.size / 1024:,.1f} KB, {how}")
    for warning in built.warnings:
        yield Check("project", "warning", warning.frame(project.folder))
    yield from _code(project, built, trial)


def _code(project: Project, built: Built, trial: Trial) -> Iterator[Check]:
    """What the code uses that Atoll lacks, and whether an engine loads it."""
    from atoll.manifests.config_fields import FindingLevel
    from atoll.project.uses import check_uses

    found = check_uses(project, built)
    yield from map(_check, found)
    if not trial.starts or any(finding.level is FindingLevel.ERROR for finding in found):
        return
    trial.run(_worker(project, built))
    if trial.refusal is not None:
        hint = "a secret that the code reads while it loads must be in `secrets.required`"
        yield Check("project", "error", f"does not load: {trial.refusal}", hint)
    elif trial.layers is not None:
        yield Check("project", "ok", "loads in an engine")


def _worker(project: Project, built: Built) -> dict[str, Any]:
    """The body of a deploy with what top-level code can see, without what depends on the node: routes, limits."""
    from atoll.project.bundle import deploy_body

    project.go_without()
    project.vars = {**dict.fromkeys(project.required_secrets, "a secret"), **project.vars}
    settings = project.settings(dev=True)
    seen = (
        "name",
        "env",
        "bindings",
        "migrations",
        "compatibility_date",
        "compatibility_flags",
        "isolation",
        "switches",
    )
    return deploy_body({key: settings[key] for key in seen if key in settings}, built.main, built.modules)


def _check(finding: Finding) -> Check:
    return Check("project", str(finding.level), f"`{finding.field}` {finding.text}", finding.hint)


def _refusals(project: Project) -> Iterator[Check]:
    """Values in the config that every node rejects."""
    from atoll.api.refusals import Refused
    from atoll.control.checks.body import checked_date, checked_env, checked_name
    from atoll.control.checks.extended import list_of
    from atoll.manifests.every import triggers

    today = datetime.datetime.now(datetime.UTC).date()
    checks: list[Callable[[], object]] = [
        lambda: checked_name(project.name),
        lambda: checked_date(project.compatibility_date, today),
        lambda: checked_env(project.vars),
    ]
    checks += [
        partial(triggers()[field].checked, msgspec.convert(entries, list_of(triggers()[field].entry)))
        for field, entries in project.triggers.items()
    ]
    for check in checks:
        try:
            check()
        except Refused as refused:
            yield Check("project", "error", str(refused), refused.hint)
