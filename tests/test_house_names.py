"""House rules about modules and names: no import cycles, the engine's rooms in order, one name for one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Rooms and modules of atoll/engine, from the top down: each imports only from those below it.
ENGINE = ["report", "process", "objects", "pool", "loaded", "calls", "link", "tenant_usage", "limits", "stats"]

# The same for atoll/control.
CONTROL = ["late", "api", "cloudflare", "endpoints", "edge", "deploy", "access", "store", "checks", "index", "ids"]


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of atoll by its dotted name, without the package itself, which every import runs first."""
    found = {}
    for path in sorted((ROOT / "atoll").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text("utf-8"), str(path))
    del found["atoll"]
    return found


@cache
def imports() -> dict[str, set[str]]:
    """The modules that each module imports, including imports inside functions and `if TYPE_CHECKING`."""
    trees = modules()
    graph: dict[str, set[str]] = {}
    for name, tree in trees.items():
        named: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                named |= {each if each in trees else node.module for each in inner}
        graph[name] = (named & set(trees)) - {name}
    return graph


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    left = list(graph[start])
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left += graph[name]
    return seen


@cache
def cycles() -> list[set[str]]:
    """Groups of modules that import each other, directly or indirectly."""
    graph = imports()
    reach = {name: reachable(graph, name) for name in graph}
    found: list[set[str]] = []
    for name in graph:
        group = {other for other in reach[name] if name in reach[other]}
        if group and group not in found:
            found.append(group)
    return found


def test_there_are_no_import_cycles() -> None:
    """Type-only imports count, because a reader must follow them too."""
    assert cycles() == []


@pytest.mark.parametrize(("package", "rooms"), [("atoll.engine", ENGINE), ("atoll.control", CONTROL)])
def test_rooms_of_a_large_package_import_down_only(package: str, rooms: list[str]) -> None:
    wrong = []
    for name, imported in imports().items():
        here = name.split(".")[2:3] if name.startswith(f"{package}.") else []
        for other in imported:
            there = other.split(".")[2:3] if other.startswith(f"{package}.") else []
            if here and there and here != there and rooms.index(there[0]) < rooms.index(here[0]):
                wrong.append(f"{name} imports {other}")
    assert not wrong


def test_no_two_classes_have_the_same_name() -> None:
    where = defaultdict(list)
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                where[node.name].append(name)
    assert not {name: places for name, places in where.items() if len(places) > 1}
