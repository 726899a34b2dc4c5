"""A project on disk, and the bundler of this repository instead of the one that users fetch."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
ESBUILD = ROOT / "node_modules" / "@esbuild" / f"linux-{MACHINE}" / "bin" / "esbuild"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """`write(**{"src/index.js": "…"})` writes files into a new folder and returns it."""
    monkeypatch.setenv("ATOLL_ESBUILD", str(ESBUILD))
    folder = tmp_path / "project"
    folder.mkdir()

    def files(**contents: str | bytes) -> Path:
        for name, content in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder

    return files
