"""Database drivers from npm, unchanged, against real servers: pg, postgres, mysql2 and ioredis."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.databases import PASSWORD, Server, mariadb, postgres, redis
from tests.npm import NoRegistry, install
from tests.running import Atoll

ATOLL = str(Path(sys.executable).parent / "atoll")
PROJECT = Path(__file__).parent / "project"
MODULES = Path(__file__).resolve().parents[2] / "build/test-drivers"  # kept between runs


class Databases:
    def __init__(self, pg: Server, mysql: Server, redis: Server) -> None:
        self.pg, self.mysql, self.redis = pg, mysql, redis


@pytest.fixture(scope="module")
def databases() -> Iterator[Databases]:
    with ExitStack() as stack, ThreadPoolExecutor() as threads:
        yield Databases(*threads.map(lambda start: stack.enter_context(start()), (postgres, mariadb, redis)))


@pytest.fixture(scope="module")
def node(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    try:
        install(PROJECT, MODULES)
    except NoRegistry as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("drivers")
    authorities = folder / "ca.pem"
    servers = {"pg": databases.pg, "mysql": databases.mysql, "redis": databases.redis}
    authorities.write_text("".join(server.authority.read_text() for server in servers.values()))
    node = Atoll(folder / "node", engines=1, egress_allow="127.0.0.1", ca_file=authorities)
    node.start()
    project = folder / "project"
    shutil.copytree(PROJECT, project)
    (project / "node_modules").symlink_to(MODULES / "node_modules")
    where = {
        name: {"port": server.port, "password": PASSWORD} | ({"tlsPort": server.tls_port} if name == "redis" else {})
        for name, server in servers.items()
    }
    config = project / "wrangler.jsonc"
    config.write_text(
        config.read_text().replace('"name":', f'"vars": {{ "DATABASES": {json.dumps(where)} }},\n  "name":')
    )
    ran = subprocess.run(
        [ATOLL, "deploy", "--api", f"http://127.0.0.1:{node.port}"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    yield node
    assert node.stop() == 0


def ask(node: Atoll, path: str) -> object:
    answer = node.get("drivers", path)
    return answer.json if answer.body[:1] in b'[{"' else answer.text


ITEMS = [{"name": name, "price": "1.5", "data": {"name": name}} for name in ("Birne", "日本")]


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/pg", [ITEMS, 3_000_000, "42703"]),
        ("/pg/net", [ITEMS, 3_000_000, "42703"]),
        ("/pg/tls", [{"ssl": True}]),
        ("/pg/pool", list(range(10))),
        ("/postgres", [[{"n": 7, "t": "text", "j": {"a": [1]}}], 5000, [{"sum": 3}], "42703"]),
        ("/postgres/tls", [{"ssl": True}]),
        ("/mysql", [[{"name": "日本", "data": {"type": "Buffer", "data": [1, 2]}}], 3_000_000, "ER_BAD_FIELD_ERROR"]),
        ("/mysql/tls", "TLSv1.3"),
        ("/mysql/pool", list(range(10))),
        ("/redis", ["日本", 1, 100, 1_000_000, ["news", "hello"], "ERR unknown", "OK"]),
        ("/redis/tls", "PONG"),
    ],
)
def test_a_driver_works(node: Atoll, path: str, answer: object) -> None:
    assert ask(node, path) == answer


def test_a_wrong_password_is_told(node: Atoll) -> None:
    told = ask(node, "/pg/wrong")
    assert isinstance(told, dict) and told["code"] == "28P01"


def test_a_pool_that_lives_across_requests_opens_new_connections(node: Atoll) -> None:
    """Its idle connections end with the request that opened them; the pool notices and opens others."""
    for _ in range(5):
        assert ask(node, "/pg/global") == [{"one": 1}]
