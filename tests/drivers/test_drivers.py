"""Database drivers from npm, unchanged, against real servers: pg, postgres, mysql2 and ioredis."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

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
    for name, server, scheme, more in (
        ("orders", databases.pg, "postgres", "postgres?sslmode=verify-full"), ("stock", databases.mysql, "mysql", "shop"),
    ):  # fmt: skip
        text = f"{scheme}://ada:{quote(PASSWORD, safe='')}@127.0.0.1:{server.port}/{more}"
        body = {"name": name, "connection_string": text}
        assert node.control("POST", "/api/hyperdrive", body).status == 201
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


# --- Hyperdrive ---


def test_hyperdrive_tells_a_driver_where_to_connect(node: Atoll, databases: Databases) -> None:
    password = quote(PASSWORD, safe="")
    assert ask(node, "/hyperdrive/facts") == [
        [True, databases.pg.port, "ada", PASSWORD, "postgres", f"postgresql://ada:{password}@HOST:{databases.pg.port}/postgres?sslmode=disable"],
        [True, databases.mysql.port, "ada", PASSWORD, "shop", f"mysql://ada:{password}@HOST:{databases.mysql.port}/shop"],
    ]  # fmt: skip


def test_hyperdrive_has_the_tls_and_the_worker_speaks_plainly(node: Atoll) -> None:
    for _ in range(4):  # also with a spare connection
        rows, answer = ask(node, "/hyperdrive/pg")  # type: ignore[misc]
        assert rows == [{"ssl": True, "name": "ada"}]
        assert answer == [ITEMS, 3_000_000, "42703"]


@pytest.mark.parametrize(
    ("path", "answer"),
    [("/hyperdrive/postgres", [{"n": 7}]), ("/hyperdrive/mysql", [{"n": 7}]), ("/hyperdrive/socket", "E")],
)
def test_a_driver_works_through_hyperdrive(node: Atoll, path: str, answer: object) -> None:
    for _ in range(3):
        assert ask(node, path) == answer


def test_the_host_of_another_workers_database_leads_nowhere(node: Atoll) -> None:
    told = ask(node, f"/hyperdrive/other?host={'0' * 32}.hyperdrive.local")
    assert isinstance(told, dict) and told["cause"].endswith("is no database of this worker")


def test_passwords_are_sealed_and_never_shown(node: Atoll) -> None:
    listed = node.control("GET", "/api/hyperdrive").json["databases"]
    assert [(each["name"], each["user"], each["tls"]) for each in listed] == [
        ("orders", "ada", True),
        ("stock", "ada", False),
    ]
    assert PASSWORD not in str(listed)
    for file in node.folder.rglob("hyperdrive.db*"):
        assert PASSWORD.encode() not in file.read_bytes() and quote(PASSWORD, safe="").encode() not in file.read_bytes()


def test_an_unknown_database_refuses_the_deploy(node: Atoll) -> None:
    body = {
        "name": "lost",
        "script": "export default { fetch() {} }",
        "bindings": [{"type": "hyperdrive", "name": "DB", "database": "nothing"}],
    }
    answer = node.control("POST", "/api/workers", body)
    assert answer.status >= 400 and "atoll hyperdrive create nothing" in answer.text


@pytest.mark.parametrize(
    "text",
    ["nonsense", "postgres://host/db", "redis://a:b@host/db", "postgres://a:b@/db", "mysql://a:b@h/d?sslmode=require", "postgres://a:b@h/d?sslmode=maybe", "postgres://a:b@h:x/d"],
)  # fmt: skip
def test_a_malformed_connection_string_is_refused(node: Atoll, text: str) -> None:
    answer = node.control("POST", "/api/hyperdrive", {"name": "bad", "connection_string": text})
    assert answer.status == 400 and "a:b" not in answer.text


# --- the guide ---


def test_the_guide_connects_to_a_database(node: Atoll, databases: Databases, tmp_path: Path) -> None:
    """Its files and commands, with the address of this test's database and node in place of those in the text."""
    guide = (Path(__file__).resolve().parents[2] / "docs/guides/databases.md").read_text().split("## Without")[0]
    for name, content in re.findall(r"```(?:jsonc|js)\n// (\S+)\n(.*?)```", guide, re.DOTALL):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
    (tmp_path / "node_modules").symlink_to(MODULES / "node_modules")
    text = f"postgres://ada:{quote(PASSWORD, safe='')}@127.0.0.1:{databases.pg.port}/postgres"
    environment = {
        **os.environ,
        "ATOLL_API": f"http://localhost:{node.port}",
        "PATH": f"{Path(ATOLL).parent}:{os.environ['PATH']}",
    }
    blocks = re.findall(r"```console\n(.*?)```", guide, re.DOTALL)
    typed = re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", "".join(blocks), re.MULTILINE)
    assert len(typed) == 3
    for command, shown in typed:
        command = command.replace("postgres://ada:secret@db.internal:5432/shop", text).replace(":8080", f":{node.port}")
        ran = subprocess.run(["bash", "-c", command.replace("curl ", "curl -s ")], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert ran.stdout.strip() == shown.replace(":8080", f":{node.port}").strip() or "create" in command
