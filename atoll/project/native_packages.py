"""Packages that cannot run in a worker, because they are native code or need more of Node: builds warn about them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from atoll.project.built import Diagnostic

PACKAGE: Final = re.compile(r"/node_modules/((?:@[^/]+/)?[^/]+)/")
NATIVE: Final = "is native code"
INSTEAD: Final = {
    "sharp": (NATIVE, "resize pictures before they reach the worker, or call a service that does"),
    "canvas": (NATIVE, "draw before the request reaches the worker, or call a service that does"),
    "bcrypt": (NATIVE, "use bcryptjs"),
    "argon2": (NATIVE, "use argon2id of @noble/hashes"),
    "better-sqlite3": (NATIVE, "use D1 or the storage of a Durable Object"),
    "sqlite3": (NATIVE, "use D1 or the storage of a Durable Object"),
    "jsdom": ("needs node:vm", "use HTMLRewriter, cheerio or linkedom"),
    "puppeteer": ("starts a browser", "call a service that does"),
    "playwright": ("starts a browser", "call a service that does"),
}


def package_in(path: str) -> str:
    """The innermost package that a file belongs to; "" if none."""
    found = PACKAGE.findall(path)
    return found[-1] if found else ""


def why_not(package: str) -> str:
    """Why a package cannot run in a worker, and what to use; "" if nothing is known against it."""
    if package not in INSTEAD:
        return ""
    reason, instead = INSTEAD[package]
    return f"{package} cannot run in a worker: it {reason}; {instead}"


def warnings_about(inputs: Iterable[Path]) -> tuple[Diagnostic, ...]:
    """A warning for each such package of a build. It is no error: some packages load one only where it works."""
    names = sorted({package_in(path.as_posix()) for path in inputs} & INSTEAD.keys())
    return tuple(Diagnostic(why_not(name)) for name in names)
