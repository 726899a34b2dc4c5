"""Checked fields of a config -> the parts of a Project, in the format of the control API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from atoll.manifests.config_fields import Finding, FindingLevel, Reading, given
from atoll.manifests.every import config_fields
from atoll.project.flags import finding_about_flag
from atoll.project.model import Blob, BuildOptions, BuildRule, Project, ProjectError
from atoll.project.rules import effective, finding_about_ended
from atoll.project.shapes import ConfigRoute
from atoll.project.subfields import findings_inside

BLOB_FIELDS = ("wasm_modules", "text_blobs", "data_blobs")
RULE_TYPES = ("ESModule", "CommonJS", "CompiledWasm", "Text", "Data")


def assemble(project: Project, values: dict[str, Any]) -> None:
    project.compatibility_date = values.get("compatibility_date", project.compatibility_date)
    project.compatibility_flags = tuple(values.get("compatibility_flags", ()))
    project.vars = dict(values.get("vars", {}))
    project.keep_vars = values.get("keep_vars", False)
    if "secrets" in values:
        project.required_secrets = tuple(values["secrets"].required)
    if "limits" in values:
        project.limits = given(msgspec.structs.asdict(values["limits"]))
    project.preview_urls = values.get("preview_urls", project.preview_urls)
    project.isolation = values.get("isolation", project.isolation)
    project.switches = values.get("switches", project.switches)
    if "dev" in values:
        project.dev_ip, project.dev_port = values["dev"].ip, values["dev"].port
        if project.dev_port is not None and not 0 <= project.dev_port <= 65535:
            raise ProjectError(f"`dev.port` is {project.dev_port}", "ports are numbers from 0 to 65535")
    if values.get("workers_dev") is False:
        project.findings.append(
            Finding(FindingLevel.NOTE, "workers_dev", f"the worker still answers on {project.name}.<base domain>")
        )
    _tell_flags(project)
    _routes(project, values)
    _bindings(project, values)
    project.build = _build(project, values)


def _tell_flags(project: Project) -> None:
    for flag in project.compatibility_flags:
        finding = finding_about_flag(flag)
        project.findings += [finding] if finding is not None else []


def _routes(project: Project, values: dict[str, Any]) -> None:
    for route in ([values["route"]] if "route" in values else []) + values.get("routes", []):
        if isinstance(route, str):
            project.routes.append(route)
        elif isinstance(route, ConfigRoute) and route.enabled:
            project.routes.append(route.pattern.rstrip("/*") if route.custom_domain else route.pattern)


def _bindings(project: Project, values: dict[str, Any]) -> None:
    """The bindings of a config. Each field is read by the binding kind it belongs to."""
    reading = Reading(project.name, project.findings)
    for field in config_fields():
        if field.name in values:
            field.read(values[field.name], reading)
    _unsafe(project, values, reading)
    project.bindings, project.triggers, project.files = reading.bindings, reading.triggers, reading.files
    taken: set[str] = set()
    for name in (*project.vars, *(binding["name"] for binding in project.bindings)):
        if name in taken:
            raise ProjectError(f"two things are named `{name}` in env", "give one of them another name")
        taken.add(name)


def _unsafe(project: Project, values: dict[str, Any], reading: Reading) -> None:
    """Entries of `unsafe.bindings`. Some are an older form of a field; every other entry is an error."""
    known = {field.unsafe[0]: field for field in config_fields() if field.unsafe is not None}
    for index, raw in enumerate(values["unsafe"].bindings if "unsafe" in values else ()):
        place = f"unsafe.bindings[{index}]"
        field = known.get(raw.get("type"))
        if field is None or field.unsafe is None:
            text = f"the binding {raw.get('name')} of type {raw.get('type')} is not supported"
            project.findings.append(Finding(FindingLevel.ERROR, "unsafe.bindings", text))
            if isinstance(raw.get("name"), str):
                project.missing[raw["name"]] = "unsafe.bindings"
            continue
        try:
            entry = msgspec.convert(raw, field.unsafe[1])
        except msgspec.ValidationError as error:
            raise ProjectError(f"`{place}` is invalid: {error}", f"write it under `{field.name}`") from None
        project.findings += findings_inside(place, raw, entry)
        field.read([entry], reading)


def _build(project: Project, values: dict[str, Any]) -> BuildOptions:
    rules = []
    for rule in values.get("rules", ()):
        if rule.type not in RULE_TYPES:
            raise ProjectError(f"`rules` has the type {rule.type!r}", f"the types are {', '.join(RULE_TYPES)}")
        rules.append(BuildRule(rule.type, tuple(rule.globs), rule.fallthrough))
    project.findings += [found] if (found := finding_about_ended(tuple(rules))) is not None else []
    no_bundle = values.get("no_bundle", False)
    build = values.get("build")
    watch = [build.watch_dir] if build is not None and isinstance(build.watch_dir, str) else []
    watch = build.watch_dir if build is not None and isinstance(build.watch_dir, list) else watch
    return BuildOptions(
        command=build.command if build is not None else "",
        cwd=_inside(project, build.cwd) if build is not None and build.cwd else None,
        watch=tuple(_inside(project, folder) for folder in watch if folder),
        no_bundle=no_bundle,
        find_modules=values.get("find_additional_modules", no_bundle and bool(rules)),
        base=_inside(project, values["base_dir"]) if values.get("base_dir") else None,
        minify=values.get("minify", False),
        keep_names=values.get("keep_names", True),
        rules=effective(tuple(rules)),
        alias=dict(values.get("alias", {})),
        define=dict(values.get("define", {})),
        blobs=tuple(
            Blob(field, name, _inside(project, path))
            for field in BLOB_FIELDS
            for name, path in values.get(field, {}).items()
        ),
        tsconfig=_inside(project, values["tsconfig"]) if "tsconfig" in values else None,
        jsx_factory=values.get("jsx_factory", ""),
        jsx_fragment=values.get("jsx_fragment", ""),
    )


def _inside(project: Project, path: str) -> Path:
    return (project.folder / path).absolute()
