"""An unresolved import has a hint what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.project.build import Builder
from atoll.project.built import BuildFailed
from atoll.project.platform import platform
from atoll.project.read import read_project
from tests.project.conftest import Write

CONFIG = 'name = "a"\nmain = "index.ts"\ncompatibility_date = "2026-01-01"\n'


def hint_of(folder: Path) -> str:
    with Builder(read_project(folder)) as builder, pytest.raises(BuildFailed) as failed:
        builder.build()
    return failed.value.hint


def importing(name: str) -> dict[str, str]:
    return {"atoll.toml": CONFIG, "index.ts": f'import x from "{name}";\nexport default {{ fetch: () => x }};'}


@pytest.mark.parametrize(
    ("name", "about", "hint"),
    [
        ("hono", '{"dependencies":{"hono":"^4"}}', "npm install"),
        ("hono/cors", '{"devDependencies":{"hono":"^4"}}', "npm install"),
        ("@team/tools/deep", '{"dependencies":{"@team/tools":"1"}}', "npm install"),
        ("hono/cors", "{}", "npm install hono"),
        ("@team/tools/deep", "{}", "npm install @team/tools"),
        ("hono", "not json", "npm install hono"),
    ],
)
def test_a_package_that_is_not_installed(
    write: Write, monkeypatch: pytest.MonkeyPatch, name: str, about: str, hint: str
) -> None:
    folder = write(**importing(name), **{"package.json": about})
    assert hint_of(folder) == f"{hint}, in {folder}"
    monkeypatch.chdir(folder)
    assert hint_of(folder) == hint


@pytest.mark.parametrize(
    ("lock", "hint"),
    [("pnpm-lock.yaml", "pnpm install"), ("yarn.lock", "yarn install"), ("bun.lock", "bun install")],
)
def test_the_package_manager_is_that_of_the_lock_file(
    write: Write, monkeypatch: pytest.MonkeyPatch, lock: str, hint: str
) -> None:
    folder = write(**importing("hono"), **{"package.json": '{"dependencies":{"hono":"^4"}}', lock: ""})
    monkeypatch.chdir(folder)
    assert hint_of(folder) == hint


@pytest.mark.parametrize("name", platform().node_modules)
def test_every_supported_module_of_node_works_without_prefix(write: Write, name: str) -> None:
    folder = write(**importing(name))
    with Builder(read_project(folder)) as builder:
        assert f'"node:{name}"'.encode() in builder.build().modules[0].source


def test_a_missing_file_is_not_reported_as_a_package(write: Write) -> None:
    assert hint_of(write(**importing("./gone"))) == ""
