"""Which file answers a path, and where other spellings of it are redirected: html_handling and not_found_handling.

Each mode is a list of steps; the first that applies wins. A redirect needs its target to serve that same file, so no
redirect leads to another page or to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from atoll.assets.rules import HtmlHandling, NotFound


class Named(Protocol):
    """A file, known by its content."""

    @property
    def hash(self) -> str: ...


class Intent(NamedTuple):
    """What answers a path: a file with a status, or a redirect to another spelling."""

    path: str = ""  # of the file
    status: int = 200
    redirect: str = ""


Files = Mapping[str, Named]
Find = Callable[[str, Files, bool], Intent | None]


def _redirect(find: Find, files: Files, moved: bool, path: str, to: str) -> Intent | None:
    """A redirect to `to`, if it serves the file at `path` and is not the name of another file."""
    wanted = files.get(path)
    if moved or wanted is None or to in files:
        return None
    target = find(to, files, True)
    if target is None or target.redirect or files[target.path].hash != wanted.hash:
        return None
    return Intent(redirect=to)


def _auto(path: str, files: Files, moved: bool = False) -> Intent | None:
    found: Intent | None = None
    if path.endswith("/index"):
        if path in files:
            return Intent(path)
        stem = path.removesuffix("/index")
        found = _redirect(_auto, files, moved, path + ".html", stem + "/")
        found = found or _redirect(_auto, files, moved, stem + ".html", stem)
    elif path.endswith("/index.html"):
        stem = path.removesuffix("/index.html")
        found = _redirect(_auto, files, moved, path, stem + "/")
        found = found or _redirect(_auto, files, moved, stem + ".html", stem)
    elif path.endswith("/"):
        if path + "index.html" in files:
            return Intent(path + "index.html")
        found = _redirect(_auto, files, moved, path[:-1] + ".html", path[:-1])
    elif path.endswith(".html"):
        stem = path.removesuffix(".html")
        found = _redirect(_auto, files, moved, path, stem)
        found = found or _redirect(_auto, files, moved, stem + "/index.html", stem + "/")
    if found is not None:
        return found
    if path in files:
        return Intent(path)
    if path + ".html" in files:
        return Intent(path + ".html")
    return _redirect(_auto, files, moved, path + "/index.html", path + "/")


def _force(path: str, files: Files, moved: bool = False) -> Intent | None:
    found: Intent | None = None
    if path.endswith("/index"):
        if path in files:
            return Intent(path)
        stem = path.removesuffix("/index")
        found = _redirect(_force, files, moved, path + ".html", stem + "/")
        found = found or _redirect(_force, files, moved, stem + ".html", stem + "/")
    elif path.endswith("/index.html"):
        stem = path.removesuffix("/index.html")
        found = _redirect(_force, files, moved, path, stem + "/")
        found = found or _redirect(_force, files, moved, stem + ".html", stem + "/")
    elif path.endswith("/"):
        for page in (path + "index.html", path[:-1] + ".html"):
            if page in files:
                return Intent(page)
    elif path.endswith(".html"):
        stem = path.removesuffix(".html")
        found = _redirect(_force, files, moved, path, stem + "/")
        if found is None and path in files:
            return Intent(path)
        found = found or _redirect(_force, files, moved, stem + "/index.html", stem + "/")
    if found is not None:
        return found
    if path in files:
        return Intent(path)
    found = _redirect(_force, files, moved, path + ".html", path + "/")
    return found or _redirect(_force, files, moved, path + "/index.html", path + "/")


def _drop(path: str, files: Files, moved: bool = False) -> Intent | None:
    found: Intent | None = None
    if path.endswith("/index"):
        if path in files:
            return Intent(path)
        stem = path.removesuffix("/index")
        if not stem:
            found = _redirect(_drop, files, moved, "/index.html", "/")
        else:
            found = _redirect(_drop, files, moved, stem + ".html", stem)
            found = found or _redirect(_drop, files, moved, path + ".html", stem)
    elif path.endswith("/index.html"):
        stem = path.removesuffix("/index.html")
        found = _redirect(_drop, files, moved, path, stem or "/")
        if found is None and path in files:
            return Intent(path)
        if stem:
            found = found or _redirect(_drop, files, moved, stem + ".html", stem)
    elif path == "/":
        if "/index.html" in files:
            return Intent("/index.html")
    elif path.endswith("/"):
        found = _redirect(_drop, files, moved, path[:-1] + ".html", path[:-1])
        found = found or _redirect(_drop, files, moved, path + "index.html", path[:-1])
    elif path.endswith(".html"):
        stem = path.removesuffix(".html")
        found = _redirect(_drop, files, moved, path, stem)
        found = found or _redirect(_drop, files, moved, stem + "/index.html", stem)
    if found is not None:
        return found
    for page in (path, path + ".html", path + "/index.html"):
        if page in files:
            return Intent(page)
    return None


def _none(path: str, files: Files, moved: bool = False) -> Intent | None:
    return Intent(path) if path in files else None


MODES: Final[Mapping[str, Find]] = {
    HtmlHandling.AUTO.value: _auto,
    HtmlHandling.FORCE.value: _force,
    HtmlHandling.DROP.value: _drop,
    HtmlHandling.NONE.value: _none,
}


def fallback(path: str, files: Files, mode: str) -> Intent | None:
    """What answers a path that has no file."""
    if mode == NotFound.SPA.value:
        return Intent("/index.html") if "/index.html" in files else None
    if mode == NotFound.PAGE.value:
        while path:
            path = path[: path.rindex("/")]
            if path + "/404.html" in files:
                return Intent(path + "/404.html", 404)
    return None
