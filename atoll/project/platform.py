"""The globals and built-in modules of a node, read from platform.gen.json, which an engine wrote."""

from __future__ import annotations

import functools

import msgspec

from atoll.project.model import Project

NODE_FLAGS = ("nodejs_compat", "nodejs_compat_v2")


class BuiltInModule(msgspec.Struct, frozen=True):
    exports: frozenset[str]
    refused: tuple[str, ...]  # functions that only throw "not available"


class Platform(msgspec.Struct, frozen=True):
    globals: frozenset[str]
    node_globals: frozenset[str]  # modules that need nodejs_compat, or a compatibility date from this day on
    node_globals_since: str
    modules: dict[str, BuiltInModule]

    @property
    def node_modules(self) -> list[str]:
        """Names of Node's modules, without `node:`."""
        return [name.removeprefix("node:") for name in self.modules if name.startswith("node:")]

    def globals_of(self, project: Project) -> frozenset[str]:
        return self.globals | self.node_globals if self.has_node_globals(project) else self.globals

    def has_node_globals(self, project: Project) -> bool:
        flags = project.compatibility_flags
        is_on = any(flag in flags and f"no_{flag}" not in flags for flag in NODE_FLAGS)
        by_date = project.compatibility_date >= self.node_globals_since and "no_nodejs_compat" not in flags
        return is_on or by_date


@functools.cache
def platform() -> Platform:
    from importlib.resources import files  # slow to import, and most commands do not need it

    return msgspec.json.decode((files("atoll.project") / "platform.gen.json").read_bytes(), type=Platform)
