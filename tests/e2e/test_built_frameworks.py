"""Sites of frameworks, built by their own tools for Cloudflare and deployed unchanged: pages, assets, an API, streaming, 404.

`make test` runs two of them, `make test-frameworks` all.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.npm import NoRegistry, install, npm_folder
from tests.running import Atoll

ATOLL = str(Path(sys.executable).parent / "atoll")
PROJECTS = Path(__file__).resolve().parents[1] / "frameworks"
MODULES = Path(__file__).resolve().parents[2] / "build/test-frameworks"  # kept between runs
BUILD_SECONDS = 600
QUIET = {
    "CI": "1",
    "WRANGLER_SEND_METRICS": "false",
    "ASTRO_TELEMETRY_DISABLED": "1",
    "NEXT_TELEMETRY_DISABLED": "1",
    "NUXT_TELEMETRY_DISABLED": "1",
}


class Framework(NamedTuple):
    folder: str
    worker: str
    title: str
    asset: str  # a pattern of a path in the page; "" if the page has none
    script: str = "build"


FRAMEWORKS = {
    each.folder: each
    for each in (
        Framework("hono-vite", "hono-vite", "Hono", ""),
        Framework("react-router", "react-router", "React Router", r"/assets/[\w.-]+\.js"),
        Framework("sveltekit", "sveltekit-app", "SvelteKit", r"/_app/immutable/[\w./-]+\.js"),
        Framework("astro", "astro-app", "Astro", ""),
        Framework("nuxt", "nuxt-app", "Nuxt", r"/_nuxt/[\w.-]+\.js"),
        Framework("tanstack-start", "tanstack-start", "TanStack Start", r"/assets/[\w.-]+\.js"),
        Framework("opennext", "opennext-app", "Next", r"/_next/static/[\w./-]+\.js", "build:worker"),
    )
}
CHOSEN = [*FRAMEWORKS] if os.environ.get("FRAMEWORKS") == "all" else ["hono-vite", "react-router"]


@pytest.fixture(scope="module", params=CHOSEN)
def framework(request: pytest.FixtureRequest, atoll: Atoll, tmp_path_factory: pytest.TempPathFactory) -> Framework:
    """A framework whose site is built and deployed."""
    chosen = FRAMEWORKS[request.param]
    folder = MODULES / chosen.folder
    try:
        install(PROJECTS / chosen.folder, folder)
    except NoRegistry as error:
        pytest.skip(str(error))
    for made in (".wrangler", "dist", "build", ".svelte-kit", ".output", ".nuxt", ".astro", ".next", ".open-next"):
        shutil.rmtree(folder / made, ignore_errors=True)
    shutil.copytree(PROJECTS / chosen.folder, folder, dirs_exist_ok=True)
    path = f"{npm_folder(tmp_path_factory.mktemp('npm'))}:{os.environ['PATH']}"
    environment = os.environ | QUIET | {"PATH": path}
    refused = run([ATOLL, "deploy", "--api", f"http://127.0.0.1:{atoll.port}"], folder, environment)
    if chosen.folder != "nuxt":  # it has no config before it is built
        assert refused.returncode == 1 and "there is no build yet" in refused.stderr, refused.stderr
    built = run(["npm", "run", chosen.script], folder, environment)
    assert built.returncode == 0, built.stdout + built.stderr
    deployed = run([ATOLL, "deploy", "--api", f"http://127.0.0.1:{atoll.port}"], folder, environment)
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    assert "warning" not in deployed.stderr, deployed.stderr
    return chosen


def run(command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )


def chunks(atoll: Atoll, worker: str, path: str) -> list[str]:
    """The chunks of a response, as the worker wrote them."""
    connection = http.client.HTTPConnection("127.0.0.1", atoll.port, timeout=60)
    found = []
    try:
        connection.request("GET", path, headers={"Host": atoll.host(worker)})
        with connection.getresponse() as response:
            assert response.chunked and response.fp is not None
            while (size := int(response.fp.readline().split(b";")[0], 16)) > 0:
                found.append(response.fp.read(size).decode("utf-8", "replace"))
                response.fp.readline()
    finally:
        connection.close()
    return found


def test_a_built_site_is_served(atoll: Atoll, framework: Framework) -> None:
    page = atoll.get(framework.worker)  # the first request: it has no warm code, and no limit may end it
    assert page.status == 200, page.text
    assert page.headers["Content-Type"].startswith("text/html")
    assert f"Hello from {framework.title}" in re.sub("<!--.*?-->", "", page.text), "with the variable of its config"
    assert atoll.get(framework.worker, "/robots.txt").text == "User-agent: *\n"
    if framework.asset:
        found = re.search(framework.asset, page.text)
        assert found is not None, page.text
        asset = atoll.get(framework.worker, found[0])
        assert (asset.status, asset.headers["Content-Type"].partition(";")[0]) == (200, "text/javascript")


def test_a_built_site_has_an_api(atoll: Atoll, framework: Framework) -> None:
    if framework.folder == "hono-vite":
        assert json.loads(atoll.get(framework.worker, "/api/visits").text) == {"visits": 1}
        assert json.loads(atoll.get(framework.worker, "/api/visits").text) == {"visits": 2}
        assert atoll.get(framework.worker, "/lazy").text == "from a module that is imported when it is needed"
        return
    answer = atoll.post(framework.worker, "/api/sum", b"[1, 2, 3]", {"Content-Type": "application/json"})
    assert (answer.status, json.loads(answer.text)) == (200, {"sum": 6})


def test_a_built_site_streams(atoll: Atoll, framework: Framework) -> None:
    found = chunks(atoll, framework.worker, "/stream")
    early = next(i for i, chunk in enumerate(found) if "early part" in chunk)
    late = next(i for i, chunk in enumerate(found) if "late part" in chunk)
    assert early < late, "the page begins before its slow part is there"


def test_a_built_site_has_a_page_for_what_is_not_there(atoll: Atoll, framework: Framework) -> None:
    answer = atoll.get(framework.worker, "/nothing/here", {"Accept": "text/html"})
    assert answer.status == 404
    assert answer.text
