"""Checked fields of a config -> the parts of a Project, in the words of the control API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from atoll.project.files import picked, worker_name
from atoll.project.model import BuildOptions, Finding, Level, Project, ProjectError, Rule
from atoll.project.shapes import RateLimit, Route

RULE_TYPES = ("ESModule", "CommonJS", "CompiledWasm", "Text", "Data")
# Flags whose behaviour Atoll always has, has by another name, or models; others are accepted and told.
KNOWN_FLAGS = frozenset(
    [
        "nodejs_compat",
        "nodejs_compat_v2",
        "nodejs_als",
        "nodejs_compat_populate_process_env",
        "streams_enable_constructors",
        "transformstream_enable_standard_constructor",
        "url_standard",
        "export_commonjs_default",
        "global_navigator",
        "fetch_refuses_unknown_protocols",
        "formdata_parser_supports_files",
        "html_rewriter_treats_esi_include_as_void_tag",
        "minimal_subrequests",
        "urlsearchparams_delete_has_value_arg",
        "http_headers_getsetcookie",
        "queues_json_messages",
        "rpc",
        "cache_option_enabled",
        "enable_weak_ref",
        "enable_ctx_exports",
        "enable_request_signal",
        "request_signal_passthrough",
        "global_fetch_strictly_public",
        "strict_crypto_checks",
        "rpc_params_dup_stubs",
    ]
)


def assemble(project: Project, values: dict[str, Any]) -> None:
    project.compatibility_date = values.get("compatibility_date", project.compatibility_date)
    project.compatibility_flags = tuple(values.get("compatibility_flags", ()))
    project.vars = dict(values.get("vars", {}))
    project.keep_vars = values.get("keep_vars", False)
    if "secrets" in values:
        project.required_secrets = tuple(values["secrets"].required)
    if "triggers" in values:
        project.crons = list(values["triggers"].crons or ())
    if "limits" in values:
        project.limits = picked(msgspec.structs.asdict(values["limits"]))
    project.isolation = values.get("isolation", project.isolation)
    project.switches = values.get("switches", project.switches)
    if "dev" in values:
        project.dev_ip, project.dev_port = values["dev"].ip, values["dev"].port
        if project.dev_port is not None and not 0 <= project.dev_port <= 65535:
            raise ProjectError(f"`dev.port` is {project.dev_port}", "ports are numbers from 0 to 65535")
    if values.get("workers_dev") is False:
        project.findings.append(
            Finding(Level.NOTE, "workers_dev", f"the worker answers on {project.name}.<base domain> all the same")
        )
    _tell_flags(project)
    _routes(project, values)
    _bindings(project, values)
    _consumers(project, values)
    project.build = _build(project, values)


def _tell_flags(project: Project) -> None:
    for flag in project.compatibility_flags:
        if flag not in KNOWN_FLAGS:
            text = f"`{flag}` is accepted, and changes nothing here"
            project.findings.append(Finding(Level.NOTE, "compatibility_flags", text))


def _routes(project: Project, values: dict[str, Any]) -> None:
    for route in ([values["route"]] if "route" in values else []) + values.get("routes", []):
        if isinstance(route, str):
            project.routes.append(route)
        elif isinstance(route, Route) and route.enabled:
            project.routes.append(route.pattern.rstrip("/*") if route.custom_domain else route.pattern)


def _bindings(project: Project, values: dict[str, Any]) -> None:
    add = project.bindings.append
    for kv in values.get("kv_namespaces", ()):
        # Without an id wrangler makes a namespace of this name
        namespace = kv.id or worker_name(f"{project.name}-{kv.binding}")
        add({"type": "kv", "name": kv.binding, "namespace": namespace})
    for producer in values["queues"].producers if "queues" in values else ():
        delay = picked({"delivery_delay": producer.delivery_delay})
        add({"type": "queue", "name": producer.binding, "queue": producer.queue, **delay})
    for service in values.get("services", ()):
        target = f"{service.service}-{service.environment}" if service.environment else service.service
        more = picked({"entrypoint": service.entrypoint, "props": service.props})
        add({"type": "service", "name": service.binding, "service": target, **more})
    for limit in (*values.get("ratelimits", ()), *_unsafe(project, values)):
        window = {"limit": limit.simple.limit, "period": limit.simple.period}
        add({"type": "ratelimit", "name": limit.name, "namespace": str(limit.namespace_id), **window})
    if "version_metadata" in values:
        add({"type": "version_metadata", "name": values["version_metadata"].binding})
    taken: set[str] = set()
    for name in (*project.vars, *(binding["name"] for binding in project.bindings)):
        if name in taken:
            raise ProjectError(f"two things are named `{name}` in env", "give one of them another name")
        taken.add(name)


def _unsafe(project: Project, values: dict[str, Any]) -> list[RateLimit]:
    """Rate limits as they were written before they had a field; whatever else is unsafe is told."""
    limits = []
    for raw in values["unsafe"].bindings if "unsafe" in values else ():
        if raw.get("type") == "ratelimit":
            limits.append(msgspec.convert(raw, RateLimit))
        else:
            text = f"the binding {raw.get('name')} of type {raw.get('type')} is not supported"
            project.findings.append(Finding(Level.ERROR, "unsafe.bindings", text))
            if isinstance(raw.get("name"), str):
                project.missing[raw["name"]] = "unsafe.bindings"
    return limits


def _consumers(project: Project, values: dict[str, Any]) -> None:
    for consumer in values["queues"].consumers if "queues" in values else ():
        given = picked(msgspec.structs.asdict(consumer))
        if given.pop("type") != "worker":
            text = f"the consumer of {consumer.queue} is no worker: pull it over the API instead"
            project.findings.append(Finding(Level.WARNING, "queues.consumers", text))
            continue
        if given.pop("visibility_timeout_ms", None) is not None:
            text = "visibility_timeout_ms is for consumers that pull"
            project.findings.append(Finding(Level.NOTE, "queues.consumers", text))
        project.queue_consumers.append(given)
    for tail in values.get("tail_consumers", ()):
        service = f"{tail.service}-{tail.environment}" if tail.environment else tail.service
        project.tail_consumers.append({"service": service})


def _build(project: Project, values: dict[str, Any]) -> BuildOptions:
    rules = []
    for rule in values.get("rules", ()):
        if rule.type not in RULE_TYPES:
            raise ProjectError(f"`rules` has the type {rule.type!r}", f"the types are {', '.join(RULE_TYPES)}")
        rules.append(Rule(rule.type, tuple(rule.globs)))
    build = values.get("build")
    watch = [build.watch_dir] if build is not None and isinstance(build.watch_dir, str) else []
    watch = build.watch_dir if build is not None and isinstance(build.watch_dir, list) else watch
    return BuildOptions(
        command=build.command if build is not None else "",
        cwd=_inside(project, build.cwd) if build is not None and build.cwd else None,
        watch=tuple(_inside(project, folder) for folder in watch if folder),
        no_bundle=values.get("no_bundle", False),
        minify=values.get("minify", False),
        keep_names=values.get("keep_names", True),
        rules=tuple(rules),
        alias=dict(values.get("alias", {})),
        define=dict(values.get("define", {})),
        tsconfig=_inside(project, values["tsconfig"]) if "tsconfig" in values else None,
        jsx_factory=values.get("jsx_factory", ""),
        jsx_fragment=values.get("jsx_fragment", ""),
    )


def _inside(project: Project, path: str) -> Path:
    return (project.folder / path).absolute()
