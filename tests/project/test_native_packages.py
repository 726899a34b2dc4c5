"""Packages that cannot run in a worker: the build and `atoll doctor` say so, and what to use."""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_projects import run


def project(folder: Path, package: str, source: str = "export default 1;") -> Path:
    home = folder / "node_modules" / package
    home.mkdir(parents=True)
    (home / "package.json").write_text(f'{{"name": "{package}", "main": "index.js", "type": "module"}}')
    (home / "index.js").write_text(source)
    (folder / "worker.js").write_text(
        f'import x from "{package}";\nexport default {{ fetch: () => new Response(`${{x}}`) }};\n'
    )
    (folder / "wrangler.json").write_text('{"name": "shop", "main": "worker.js", "compatibility_date": "2026-08-04"}')
    return folder


WARNING = "sharp cannot run in a worker: it is native code; resize pictures before they reach the worker"


def test_a_build_warns_about_native_packages(tmp_path: Path) -> None:
    told = run(project(tmp_path, "sharp"), "build")
    assert WARNING in told.stderr + told.stdout


def test_doctor_tells_about_native_packages(tmp_path: Path) -> None:
    told = run(project(tmp_path, "sharp"), "doctor")
    assert WARNING in told.stdout


def test_a_failed_build_hints_at_the_package_that_cannot_run(tmp_path: Path) -> None:
    told = run(project(tmp_path, "jsdom", 'export { default } from "./generated.js";'), "build", code=1)
    assert "hint: jsdom cannot run in a worker: it needs node:vm; use HTMLRewriter, cheerio or linkedom" in told.stderr


def test_other_packages_are_not_mentioned(tmp_path: Path) -> None:
    told = run(project(tmp_path, "sharpen"), "build")
    assert "cannot run" not in told.stderr + told.stdout
