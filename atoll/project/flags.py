"""Cloudflare's compatibility flags: what each does here, and the findings about those of a project."""

from __future__ import annotations

import functools
import re
from typing import Literal

import msgspec

from atoll.manifests.config_fields import Finding, FindingLevel
from atoll.project.platform import platform

NODE_MODULE = re.compile(r"enable_nodejs_(\w+?)_modules?")


class Company(msgspec.Struct, frozen=True):
    """With one of these flags, a flag is on from a date."""

    flags: tuple[str, ...]
    since: str


class CompatibilityFlag(msgspec.Struct, frozen=True):
    state: Literal["done", "always", "not yet", "cannot"]
    note: str  # what is true while it is on; of one that never is, what is missing
    off: str | None = None  # the flag that switches it off
    since: str | None = None  # the compatibility date from which it is on
    company: Company | None = msgspec.field(default=None, name="with")


@functools.cache
def flags() -> dict[str, CompatibilityFlag]:
    """Every flag of protocol/flags.toml."""
    from importlib.resources import files  # slow to import, and most commands do not need it

    return msgspec.json.decode(
        (files("atoll.project") / "flags.gen.json").read_bytes(), type=dict[str, CompatibilityFlag]
    )


def finding_about_flag(name: str) -> Finding | None:
    """The finding about a flag of a project; None if Atoll does what it asks for."""
    if (module := NODE_MODULE.fullmatch(name)) is not None:
        needed = f"node:{module[1].removesuffix('_server')}"
        return None if needed in platform().modules else _finding(FindingLevel.ERROR, f"`{name}`: there is no {needed}")
    flag = flags().get(name)
    if flag is not None:
        return _about_known(name, flag)
    opposite = next((flag for flag in flags().values() if flag.off == name), None)
    if opposite is not None:
        return None if opposite.state != "always" else _ignored(name)
    import difflib  # slow to import, and rarely needed

    known = [*flags(), *(flag.off for flag in flags().values() if flag.off is not None)]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
    if close:
        return _finding(FindingLevel.WARNING, f"`{name}` is not a known flag", f"did you mean `{close[0]}`?")
    return _finding(FindingLevel.NOTE, f"`{name}` is not known to Atoll, so it has no effect")


def _about_known(name: str, flag: CompatibilityFlag) -> Finding | None:
    if flag.state == "cannot":
        return _finding(FindingLevel.ERROR, f"`{name}` is not supported: {flag.note}")
    if flag.state == "not yet":
        return _finding(FindingLevel.WARNING, f"`{name}` has no effect yet: {flag.note}")
    return None


def _ignored(name: str) -> Finding:
    text = f"`{name}` is ignored: it selects an older behaviour that Atoll does not have"
    return _finding(FindingLevel.WARNING, text)


def _finding(level: FindingLevel, text: str, hint: str = "") -> Finding:
    return Finding(level, "compatibility_flags", text, hint)
