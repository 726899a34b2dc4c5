"""Every place that decodes what somebody else wrote expects deep nesting: a thousand brackets are a RecursionError."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ATOLL = Path(__file__).parents[1] / "atoll"


def names_in(caught: ast.expr | None) -> set[str]:
    return {ast.unparse(each) for each in (caught.elts if isinstance(caught, ast.Tuple) else [caught]) if each}


def forgetful() -> Iterator[str]:
    for path in sorted(ATOLL.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Try):
                caught = set().union(*(names_in(handler.type) for handler in node.handlers))
                if "msgspec.DecodeError" in caught and not caught & {"RecursionError", "Exception"}:
                    yield f"{path.relative_to(ATOLL.parent)}:{node.lineno}"


def test_whoever_expects_malformed_json_expects_deep_json_too() -> None:
    assert list(forgetful()) == []
