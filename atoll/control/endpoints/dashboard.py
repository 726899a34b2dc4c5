"""The dashboard: a page with scripts, only on control hosts. Its files are in memory, with their compressed forms.

The page is the same for every path below /dashboard/; the script reads the path. It holds the caller's
session, so it need not ask for that. The Content-Security-Policy allows scripts and styles of this origin only,
and Trusted Types keep the page from turning text into markup: all names, keys and logs of tenants are hostile.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.refusals import ApiCode, Refused
from atoll.api.routes import HEADERS, Route, caller_of
from atoll.engine.process.engine_process import built_folders

AT = "/dashboard"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';"
    " font-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'"
)
SHELL_HEADERS = HEADERS | {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
}
ASSET_HEADERS = {
    "cache-control": "public, max-age=31536000, immutable",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "vary": "accept-encoding",
}
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
ENCODINGS = (("br", ".br"), ("gzip", ".gz"))  # the best first

SHELL = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Atoll</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{at}/assets/{style}">
{preload}<script type="module" src="{at}/assets/{script}"></script>
<script type="application/json" id="session">{session}</script>
<div id="app"><p class="boot">Loading the dashboard</p></div>
<noscript>The dashboard needs JavaScript. Without it there is <a href="/">the list of workers</a>.</noscript>
</html>
"""


class BuiltDashboard(msgspec.Struct):
    """The files as the build left them."""

    script: str
    style: str
    preload: list[str]  # what the script imports
    files: dict[str, bytes] = {}


class DashboardApi:
    """`session_of` is what the page may know about its caller."""

    def __init__(self, session_of: Callable[[Request], object]) -> None:
        self._session_of = session_of
        self._built: BuiltDashboard | None = None

    def routes(self) -> list[Route]:
        summary = "A page of the dashboard"
        return [
            Route("GET", AT, self.move, Scope.PUBLIC, "To the dashboard", media="text/html", status=307),
            Route(
                "GET",
                f"{AT}/assets/{{asset}}",
                self.asset,
                Scope.PUBLIC,
                "A script or style of the dashboard",
                media="text/javascript",
            ),
            Route("GET", f"{AT}/{{page:path}}", self.shell, Scope.PUBLIC, summary, media="text/html"),
        ]

    @property
    def built(self) -> BuiltDashboard:
        if self._built is None:
            self._built = read_built()
        return self._built

    async def move(self, request: Request) -> Response:
        return Response("", 307, headers=HEADERS | {"location": f"{AT}/"}, media_type="text/html")

    async def shell(self, request: Request) -> Response:
        session = "null"
        if caller_of(request).may(Scope.ANY):
            session = msgspec.json.encode(self._session_of(request)).decode()
        built = self.built
        preload = "".join(f'<link rel="modulepreload" href="{AT}/assets/{name}">\n' for name in built.preload)
        page = SHELL.format(
            at=AT, style=built.style, preload=preload, script=built.script, session=session.replace("<", "\\u003c")
        )
        return Response(page, headers=SHELL_HEADERS, media_type="text/html")

    async def asset(self, request: Request) -> Response:
        name, files = request.path_params["asset"], self.built.files
        kind = TYPES.get(Path(name).suffix)
        if kind is None or name not in files:
            raise Refused(ApiCode.NOT_FOUND, "the dashboard has no such file", "reload the page")
        headers = ASSET_HEADERS | {"content-type": kind}
        accepted = {part.partition(";")[0].strip() for part in request.headers.get("accept-encoding", "").split(",")}
        for encoding, ending in ENCODINGS:
            if encoding in accepted and name + ending in files:
                return Response(files[name + ending], headers=headers | {"content-encoding": encoding})
        return Response(files[name], headers=headers)


def read_built() -> BuiltDashboard:
    for folder in built_folders():
        built = folder / "_engine" / "dashboard"
        if (built / "index.json").exists():
            found = msgspec.json.decode((built / "index.json").read_bytes(), type=BuiltDashboard)
            found.files = {file.name: file.read_bytes() for file in built.iterdir() if file.name != "index.json"}
            return found
    raise Refused(ApiCode.UNAVAILABLE, "the dashboard is not built", "run `make setup`")
