"""Packages from npm, unchanged: what a user does first with each gives the same result in a worker as in Node.

`make test` runs the packages of `quick/`, `make test-packages` also those of `rest/`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.databases import PASSWORD, postgres, redis
from tests.npm import NoRegistry
from tests.packages.page import PAGE, case_names, page
from tests.packages.project import Project, servers
from tests.running import Atoll

WORKERS = 4  # of one project; each has some of its packages
PROJECTS = ["quick", "rest"] if os.environ.get("PACKAGES") == "all" else ["quick"]
CASES = [(name, case) for name in PROJECTS for case in case_names(name)]


class Run:
    """The packages of a project in workers of a node, and their results in Node."""

    def __init__(self, node: Atoll, project: Project, where: dict[str, Any]) -> None:
        self.node, cases = node, project.cases()
        self.in_node = project.in_node(cases, where)
        self._workers: dict[str, str] = {}
        for number in range(WORKERS):
            worker = f"packages-{number}"
            project.deploy(node, worker, cases[number::WORKERS], where)
            self._workers |= dict.fromkeys(cases[number::WORKERS], worker)

    def in_a_worker(self, case: str) -> Any:
        answer = self.node.get(self._workers[case], f"/{case}")
        assert answer.status == 200, answer.text
        return answer.json


def s3_of(node: Atoll) -> dict[str, Any]:
    made = node.control("POST", "/api/r2-credentials", {}).json
    assert node.control("POST", "/api/r2", {"name": "packages"}).status == 201
    credentials = {"accessKeyId": made["access_key_id"], "secretAccessKey": made["secret_access_key"]}
    return {"endpoint": f"http://127.0.0.1:{node.port}", "bucket": "packages", "credentials": credentials}


@contextmanager
def serving(folder: Path, **settings: object) -> Iterator[Atoll]:
    node = Atoll(folder, engines=1, **settings)
    node.start()
    yield node
    assert node.stop() == 0


@pytest.fixture(scope="module", params=PROJECTS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("packages")
    try:
        project = Project(request.param, folder / "project")
    except NoRegistry as error:
        pytest.skip(str(error))
    with ExitStack() as stack:
        node = stack.enter_context(serving(folder / "node", egress_allow="127.0.0.1"))
        where: dict[str, Any] = {}
        if request.param == "quick":
            cache, database = stack.enter_context(redis()), stack.enter_context(postgres())
            login = {"host": "127.0.0.1", "password": PASSWORD}
            # A node that holds files: a worker may not call the node that it runs on.
            files = stack.enter_context(serving(folder / "files", s3_host="127.0.0.1"))
            where = stack.enter_context(servers(project)) | {
                "redis": login | {"port": cache.port},
                "pg": login | {"port": database.port, "user": "ada", "database": "postgres"},
                "s3": s3_of(files),
            }
        yield Run(node, project, where)


@pytest.mark.parametrize(("run", "case"), CASES, indirect=["run"], scope="module")
def test_a_package_does_the_same_in_a_worker_as_in_node(run: Run, case: str) -> None:
    expected, found = run.in_node[case], run.in_a_worker(case)
    assert "result" in expected, f"in Node: {expected['error']}"
    assert "result" in found, f"in a worker: {found['error']}"
    assert found == expected


def test_the_guide_lists_every_package_with_its_version() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.packages.page`"
