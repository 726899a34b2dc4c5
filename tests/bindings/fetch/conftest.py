"""A node whose workers may reach 127.0.0.1, and a server there that does what its paths say."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.running import Answer, Atoll
from tests.upstream import Upstream


@pytest.fixture(scope="package")
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


@pytest.fixture(scope="package")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    atoll = Atoll(
        tmp_path_factory.mktemp("fetch"), egress_allow="127.0.0.1", egress_deny="*:9", engines=1, fetch_timeout=1
    )
    atoll.start()
    yield atoll
    atoll.stop()


@pytest.fixture
def run(node: Atoll, upstream: Upstream, request: pytest.FixtureRequest) -> Callable[..., Answer]:
    """Runs the body of a fetch handler, in which UP is the server's address; returns its answer."""
    count = 0

    def run(body: str, *, headers: dict[str, str] | None = None, data: bytes | None = None, **fields: object) -> Answer:
        nonlocal count
        count += 1
        name = f"w{abs(hash(request.node.name)) % 10**9}-{count}"
        source = f'const UP = "{upstream.url}";\nexport default {{ async fetch(request, env, ctx) {{ {body} }} }};'
        node.deploy(name, source, **fields)
        return node.get(name, headers=headers) if data is None else node.post(name, "/", data, headers)

    return run
