"""Projects in the shape that create-cloudflare makes them: their own `npm run deploy` deploys to a node.

Two environment variables say where the node is. `make test` runs one project, `make test-frameworks` all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.npm import NoRegistry, install, npm_folder
from tests.running import Atoll
from tests.wrangler.stock import ROOT, TOOL, Wrangler

FRAMEWORKS = ROOT / "tests/frameworks"
HONO = Path(__file__).parent / "hono"
BUILT = {"hono-vite": "Hello from Hono", "react-router": "Hello from React Router", "astro": "Hello from Astro"}
WORKERS = {"astro": "astro-app"}
ALL = os.environ.get("FRAMEWORKS") == "all"


@pytest.fixture
def hono(wrangler: Wrangler) -> Iterator[Path]:
    """The project next to the packages of the tool, where its imports find them."""
    folder = TOOL / f"hono-{uuid.uuid4().hex}"
    shutil.copytree(HONO, folder)
    yield folder
    shutil.rmtree(folder)


def deploy(folder: Path, wrangler: Wrangler, tools: Path) -> None:
    names = ("HOME", "CLOUDFLARE_API_BASE_URL", "CLOUDFLARE_API_TOKEN")
    environment = {name: wrangler.environment[name] for name in names}
    environment |= {"PATH": f"{npm_folder(tools)}:{os.environ['PATH']}", "CI": "1", "ASTRO_TELEMETRY_DISABLED": "1"}
    environment["WRANGLER_SEND_METRICS"] = "false"
    ran = subprocess.run(
        ["npm", "run", "deploy"], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Current Version ID" in ran.stdout


def test_a_hono_project_deploys_itself(wrangler: Wrangler, strict: Atoll, hono: Path, tmp_path: Path) -> None:
    deploy(hono, wrangler, tmp_path)
    assert strict.get("created-hono", "/api/hello/you").json == {"hello": "you", "from": "a variable"}
    assert strict.get("created-hono", "/robots.txt").text == "User-agent: *\n"


@pytest.mark.skipif(not ALL, reason="make test-frameworks builds these projects")
@pytest.mark.parametrize("project", BUILT)
def test_a_built_project_deploys_itself(project: str, wrangler: Wrangler, strict: Atoll, tmp_path: Path) -> None:
    folder = ROOT / "build/test-frameworks" / project
    try:
        install(FRAMEWORKS / project, folder)
    except NoRegistry as error:
        pytest.skip(str(error))
    shutil.copytree(FRAMEWORKS / project, folder, dirs_exist_ok=True)
    deploy(folder, wrangler, tmp_path)
    page = strict.get(WORKERS.get(project, project))
    assert page.status == 200 and BUILT[project] in page.text.replace("<!-- -->", "")
