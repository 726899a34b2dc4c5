"""The page a browser shows while the project does not build. It reloads once the build works."""

from __future__ import annotations

import json

from starlette.responses import Response

from atoll.front.pages import GOES_AWAY, PAGE, RELOAD, framed

TITLE = "The project does not build"


def build_page(error: str, accept: str) -> Response:
    """HTML for browsers, JSON or text for other clients; always status 500 and never cached."""
    headers = {"cache-control": "no-store", "x-atoll-error": "build"}
    if "text/html" in accept:
        details = f"{framed(error)}\n  <p>{GOES_AWAY}</p>\n  {RELOAD}"
        page = PAGE.format(status=500, code="build", title=TITLE, details=details)
        return Response(page, 500, headers, "text/html")
    if "application/json" in accept:
        body = json.dumps({"error": {"type": "build", "message": error}})
        return Response(body, 500, headers, "application/json")
    return Response(f"error: {TITLE.lower()}\n{error}\n", 500, headers, "text/plain")
