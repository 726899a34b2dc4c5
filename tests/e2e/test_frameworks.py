"""Sites that frameworks build run from their wrangler config: Vite with React and a worker, SvelteKit as static pages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from atoll.engine.process.engine_process import find_files
from tests.browser import Tab, browser, tab
from tests.running import Atoll

__all__ = ["browser", "tab"]

ATOLL = str(Path(sys.executable).parent / "atoll")
PROJECTS = Path(__file__).resolve().parents[1] / "projects"
MODULES = Path(__file__).resolve().parents[2] / "build/test-projects"  # kept between runs: the install takes 13 s
BUILD_SECONDS = 300


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Build a project as its author would; gives its folder."""
    node = find_files().node
    lock = (PROJECTS / "package-lock.json").read_text()
    mark = MODULES / "installed"
    if not mark.exists() or mark.read_text() != lock:
        MODULES.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(PROJECTS / name, MODULES)
        npm = node.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
        # Not `npm ci`: it refuses a lock file without the packages of other platforms.
        words = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        ran = subprocess.run(
            [node, "--use-system-ca", npm, *words], cwd=MODULES, capture_output=True, text=True, timeout=BUILD_SECONDS
        )
        if ran.returncode:
            pytest.skip(f"the packages cannot be fetched: {ran.stderr[-500:]}")
        mark.write_text(lock)
    root = tmp_path_factory.mktemp("projects")
    (root / "node_modules").symlink_to(MODULES / "node_modules")
    shutil.copy(PROJECTS / "package.json", root)

    def build(name: str) -> Path:
        shutil.copytree(PROJECTS / name, root / name)
        vite = root / "node_modules/vite/bin/vite.js"
        ran = subprocess.run(
            [node, vite, "build"], cwd=root / name, capture_output=True, text=True, timeout=BUILD_SECONDS
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return root / name

    return build


def deploy(atoll: Atoll, project: Path) -> None:
    command = [ATOLL, "deploy", "--api", f"http://127.0.0.1:{atoll.port}"]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_vite_app_with_react_runs_in_a_browser(atoll: Atoll, built: Callable[[str], Path], tab: Tab) -> None:
    deploy(atoll, built("vite-react"))
    tab.send("Page.navigate", url=f"http://vite-react.localhost:{atoll.port}/deep/link")
    text = tab.wait_for(
        "Hello from the worker"
    )  # the page came from the app's index.html, the greeting from the worker
    assert "/deep/link" in text and "clicked 0" in text
    tab.send("Runtime.evaluate", expression="document.querySelector('button').click()")
    tab.wait_for("clicked 1")
    colour = tab.send("Runtime.evaluate", expression="getComputedStyle(document.querySelector('main')).color")
    assert colour["result"]["value"] == "rgb(10, 20, 30)", "the style sheet is applied, so its type was right"


def test_a_static_sveltekit_site_is_served(atoll: Atoll, built: Callable[[str], Path], tab: Tab) -> None:
    deploy(atoll, built("sveltekit"))
    about = atoll.get("sveltekit", "/about")
    assert (about.status, about.headers["X-Page"]) == (200, "about")
    assert "<h1>About</h1>" in about.text
    assert atoll.get("sveltekit", "/about.html").status == 307
    assert atoll.get("sveltekit", "/old").headers["Location"] == "/about"
    assert atoll.get("sveltekit", "/nothing").status == 404
    assert atoll.get("sveltekit", "/_headers").status == 404
    tab.send("Page.navigate", url=f"http://sveltekit.localhost:{atoll.port}/about")
    tab.wait_for("clicked 0")

    def clicked() -> bool:  # the page shows its button before its script is there
        tab.send("Runtime.evaluate", expression="document.querySelector('button').click()")
        return "clicked 0" not in tab.text()

    atoll.wait_until(clicked, 30)
