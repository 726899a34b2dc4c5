"""The values of a node's settings, from all their sources.

A later source wins: defaults, the `[node]` table of atoll.toml, the environment, flags. Values are checked here, before
anything starts, and an error names the setting as the operator wrote it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from atoll.config import FIELDS, Settings, env_names, facts_of, flag_name
from atoll.config_file import find_file, nearest, read_file, refuse_mistyped
from atoll.config_values import checked
from atoll.errors import StartError


def load(config: Path | None, env: Mapping[str, str], flags: Mapping[str, str]) -> Settings:
    """The settings of this start. `flags` holds only the flags that were given, by the name of their setting."""
    return load_with_origins(config, env, flags)[0]


def load_with_origins(
    config: Path | None, env: Mapping[str, str], flags: Mapping[str, str]
) -> tuple[Settings, dict[str, str]]:
    """Like `load`, with the origin of each value that is not the default: a line of a file, a variable or a flag."""
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    path = find_file(config, env)
    for name, raw, place in read_file(path, FIELDS) if path is not None else ():
        value = _checked(name, raw, f"`{name}` in {place}")
        # A path in a file is relative to the file, not to the current folder.
        values[name] = path.parent / value if path is not None and isinstance(value, Path) else value
        origins[name] = place
    refuse_mistyped(env, [variable for name in FIELDS for variable in env_names(name)])
    for name in FIELDS:
        for variable in env_names(name):
            if env.get(variable, "") != "":
                values[name], origins[name] = _checked(name, env[variable], variable), variable
    for name, text in flags.items():
        values[name], origins[name] = _checked(name, text, flag_name(name)), flag_name(name)
    if "public_url" in values and "base_domain" not in values:
        origins["base_domain"] = f"public_url ({origins['public_url']})"
    return _settings(values, origins), origins


def settings_from(values: Mapping[str, object]) -> Settings:
    """Settings given by a program, by name, checked like those of a file."""
    checked: dict[str, object] = {}
    for name, raw in values.items():
        if name not in FIELDS:
            raise StartError(f"`{name}` is not a setting", nearest(name, FIELDS))
        checked[name] = _checked(name, str(raw) if isinstance(raw, Path) else raw, f"`{name}`")
    return _settings(checked)


def _settings(values: Mapping[str, object], origins: Mapping[str, str] | None = None) -> Settings:
    own = {name: value for name, value in values.items() if not FIELDS[name].of_binding}
    of_bindings = {name: value for name, value in values.items() if FIELDS[name].of_binding}
    if "public_url" in own:
        own.setdefault("base_domain", urlsplit(str(own["public_url"])).hostname)
    # Each value was converted by its field
    settings = dataclasses.replace(Settings(), **own, of_bindings=of_bindings)  # type: ignore[arg-type]
    _check_together(settings, origins or {})
    return settings


def _checked(name: str, raw: object, called: str) -> object:
    return checked(name, FIELDS[name].default, facts_of(name), raw, called)


def _check_together(settings: Settings, origins: Mapping[str, str]) -> None:
    """Checks that need two values: a default must not be above its maximum, and the public URL on the base domain."""
    host = urlsplit(settings.public_url).hostname or settings.base_domain
    if host != settings.base_domain:
        raise StartError(
            f"public_url is {settings.public_url}, but workers answer below base_domain, which is"
            f" {settings.base_domain}",
            "leave out base_domain, or use the same host in both",
        )
    _check_store(settings)
    for name in ("cpu_ms", "wall_ms", "memory_mb", "subrequests", "internal_subrequests", "timer_ms"):
        value, cap = getattr(settings, name), getattr(settings, f"max_{name}")
        if value > cap:
            place, cap_place = (f" ({origins[each]})" if each in origins else "" for each in (name, f"max_{name}"))
            raise StartError(
                f"{name} is {value}{place}, above max_{name}, which is {cap}{cap_place}",
                f"raise max_{name} or lower {name}",
            )


def _check_store(settings: Settings) -> None:
    if settings.store == "sqlite":
        for name in ("node_name", "node_address", "node_link"):
            if getattr(settings, name):
                raise StartError(f"{name} is for nodes that share a PostgreSQL", "set store too, or leave it out", name)
        if settings.processes > 1:
            raise StartError(
                "several processes must share a PostgreSQL: SQLite is the file of one process",
                "set store=postgresql://… too, or leave processes at 1; a single process has an engine for each core",
                "processes",
            )
        if settings.only_node == "on":
            raise StartError("only_node is for nodes with PostgreSQL", "set store too, or leave it out", "only_node")
    elif settings.store.split(":", 1)[0] not in ("postgresql", "postgres"):
        raise StartError(
            "store must be sqlite, or an address that begins with postgresql://", "see docs/guides/cluster.md", "store"
        )
    if settings.processes > 1 and settings.only_node == "on":
        raise StartError("only_node is on, but there are several processes", "leave out one of both", "processes")
    if settings.processes > 1 and settings.https_port:
        hint = "let an edge in front of the processes do HTTPS (docs/guides/https-and-proxies.md)"
        raise StartError("several processes do not open https_port", hint, "https_port")
