"""Three real nodes on one real PostgreSQL, started once for the tests of a file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres_server import StoppableServer, stoppable_server
from tests.running import Atoll


class Nodes:
    def __init__(self, folder: Path, server: StoppableServer) -> None:
        self.folder = folder
        self.server = server
        self.all: list[Atoll] = []
        self._made = 0

    def add(self, **settings: object) -> Atoll:
        """Start one more node, with the root key of the first."""
        self._made += 1
        folder = self.folder / f"node{self._made}"
        (folder / "data").mkdir(parents=True, mode=0o700)
        if self.all:
            shutil.copy(self.all[0].folder / "data/root-key", folder / "data/root-key")
        node = Atoll(folder, **{"store": self.server.url, "engines": 1, "spares": 0, **settings})
        self.all.append(node)
        node.start()
        node.wait_until(lambda: node.control("GET", "/readyz").status == 200)
        return node

    def deploy(self, name: str, script: str, node: int = 0, **more: object) -> None:
        answer = self.all[node].control("POST", "/api/workers", {"name": name, "script": script, **more})
        assert answer.status == 201, answer.text
        assert answer.headers["x-atoll-pending-nodes"] is None

    def stop(self) -> None:
        for node in self.all:
            if node.process is not None:
                node.stop()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with stoppable_server() as server:
        made = Nodes(tmp_path_factory.mktemp("nodes"), server)
        try:
            for _ in range(3):
                made.add()
            yield made
        finally:
            made.stop()
