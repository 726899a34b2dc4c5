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
from tests.npm import NoRegistry, NpmFailed, install
from tests.running import Atoll, free_port

__all__ = ["browser", "tab"]

ATOLL = str(Path(sys.executable).parent / "atoll")
PROJECTS = Path(__file__).resolve().parents[1] / "projects"
MODULES = Path(__file__).resolve().parents[2] / "build/test-projects"  # kept between runs: the install takes 13 s
BUILD_SECONDS = 300


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Build a project as its author would; gives its folder."""
    node = find_files().node
    try:
        install(PROJECTS, MODULES)
    except NoRegistry as error:
        pytest.skip(str(error))
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


def test_a_registry_that_is_away_is_told_from_wrong_packages(tmp_path: Path) -> None:
    project, cache = (
        tmp_path / "project",
        {"npm_config_cache": str(tmp_path / "cache"), "npm_config_fetch_retries": "0"},
    )
    project.mkdir()
    (project / ".npmrc").write_text(f"registry=http://127.0.0.1:{free_port()}/\n")
    (project / "package-lock.json").write_text("{}")
    (project / "package.json").write_text('{"name": "x", "dependencies": {"left-pad": "1"}}')
    with pytest.raises(NoRegistry, match="ECONNREFUSED"):
        install(project, tmp_path / "away", tries=2, more=cache)
    (project / "package.json").write_text('{"name": "x", "dependencies": {"left-pad": "file:./nothing.tgz"}}')
    with pytest.raises(NpmFailed, match="ENOENT"):
        install(project, tmp_path / "wrong", more=cache)
    assert not (tmp_path / "wrong/installed").exists()


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
