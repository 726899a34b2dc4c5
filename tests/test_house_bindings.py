"""A binding is one folder: nothing outside it names it, and a new one works without changes elsewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.manifests.every import config_names, manifests, trigger_kinds
from atoll.manifests.manifest import Manifest

ROOT = Path(__file__).resolve().parent.parent
BINDINGS = ROOT / "atoll/bindings"

# Ordinary words with other meanings elsewhere: only in quotes do they name the field of a binding.
ORDINARY = {"triggers", "services", "queues", "crons", "assets", "workflows"}


# Words that mean something else elsewhere: every schema folder has migrations, every module exports, the front sites,
# every URL an origin.
ELSEWHERE = {"migrations", "exports", "origin", "site"}


def names_of(manifest: Manifest) -> set[str]:
    """The words that only the folder of a binding may contain."""
    kind = manifest.kind
    fields = {field for field, owner in trigger_kinds().items() if owner == kind}
    names = {
        f"atoll.bindings.{kind}",
        *config_names(kind),
        *fields,
        *manifest.settings,
        *manifest.quotas,
        *([manifest.type_name] if manifest.type_name not in ("", "Queue") else []),
    }
    return names - ELSEWHERE


def pattern_of(name: str) -> str:
    return rf'["\'`]{name}["\'`]' if name in ORDINARY else rf"(?<![\w.]){re.escape(name)}(?!\w)"


def sources() -> Iterator[Path]:
    for folder in ("atoll", "web", "engine/src", "tools"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".js", ".mjs", ".cc", ".h", ".ts") and path.is_file():
                yield path


def is_kind(node: ast.AST, kind: str) -> bool:
    """Code that decides by the kind of a binding: `entry["type"] == "kv"`, `bindings["kv"]`, `{"type": "kv"}`."""
    if isinstance(node, ast.Compare):
        return any(isinstance(each, ast.Constant) and each.value == kind for each in node.comparators) and (
            re.search(r"\b(kind|type)\b", ast.unparse(node.left)) is not None
        )
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == kind:
        return re.search(r"\b(bindings|kinds|manifests\(\))$", ast.unparse(node.value)) is not None
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return any(
            isinstance(key, ast.Constant)
            and key.value == "type"
            and isinstance(value, ast.Constant)
            and value.value == kind
            for key, value in pairs
        )
    return False


def strays(manifest: Manifest) -> list[str]:
    """Places outside its folder that name a binding."""
    words = re.compile("|".join(map(pattern_of, sorted(names_of(manifest)))))
    found = []
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        # Bindings may use each other: fetch() uses the cache, services use pipes.
        if path.is_relative_to(BINDINGS):
            continue
        text = path.read_text("utf-8")
        found += [f"{name}:{text[: match.start()].count(chr(10)) + 1} {match[0]}" for match in words.finditer(text)]
        if path.suffix == ".py":
            tree = ast.parse(text)
            found += [
                f"{name}:{node.lineno} {manifest.kind}" for node in ast.walk(tree) if is_kind(node, manifest.kind)
            ]  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("kind", sorted(manifests()))
def test_nothing_outside_its_folder_names_a_binding(kind: str) -> None:
    assert strays(manifests()[kind]) == []


def test_manifests_import_nothing_heavy() -> None:
    """Every command imports every manifest."""
    for path in sorted(BINDINGS.glob("*/manifest.py")):
        imported = [
            node
            for node in ast.parse(path.read_text("utf-8")).body
            if isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "module", "") != "__future__"
        ]
        names = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imported}
        assert names <= {"atoll.manifests.manifest", "typing", "collections.abc", "json"}, path
