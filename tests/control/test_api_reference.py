"""The reference of the API is complete: every endpoint has a heading."""

from __future__ import annotations

import re
from pathlib import Path

from control_plane import Node

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "api.md"


async def test_every_endpoint_has_a_heading(node: Node) -> None:
    headings = set(re.findall(r"^## (.+)$", PAGE.read_text("utf-8"), re.MULTILINE))
    wanted = {f"{route.method} {shown(route.path)}" for route in node.api.routes}
    assert len(wanted) >= 10 and not wanted - headings


def shown(path: str) -> str:
    """A path as the page writes it: /api/workers/:id"""
    return re.sub(r"\{(\w+)(:path)?\}", r":\1", path).replace(":worker", ":id")
