"""For tests of workers: a node that plain functions can use, and a pytest fixture.

In conftest.py:

    pytest_plugins = ["atoll.testing"]

and then in a test:

    def test_it_greets(atoll):
        worker = atoll.deploy("hello", Path("worker.js").read_text())
        assert worker.fetch("/").text == "Hello!"

One node serves all tests of a session. The workers of a test are deleted after it. To change the node's settings,
define a fixture `atoll_settings` that returns them: `{"engines": 2, "cpu_ms": 500}`. For async tests use `atoll.Atoll`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pytest
import uvloop

from atoll.bindings.host import HostBinding
from atoll.embed import Atoll, Body, Headers, Response

T = TypeVar("T")

SECONDS = 120.0  # the longest that one call may take


class TestWorker:
    """A deployed worker. `facts` is its description in the API."""

    __test__ = False  # keeps pytest from collecting it

    def __init__(self, node: TestNode, name: str, facts: Mapping[str, Any]) -> None:
        self._node = node
        self.name = name
        self.facts = facts

    def fetch(
        self, path: str = "/", *, method: str = "GET", headers: Headers | None = None, body: Body = b""
    ) -> Response:
        """Send a request to the worker's own host."""
        return self._node.fetch(self._node.url(self.name, path), method=method, headers=headers, body=body)

    def logs(self, **question: object) -> list[dict[str, Any]]:
        """The worker's calls, newest first."""
        return self._node.logs(self.name, **question)


class TestNode:
    """An `Atoll` in a thread of its own, with the same methods, which block until their result is there."""

    __test__ = False

    def __init__(
        self,
        data: Path | str | None = None,
        *,
        port: int | None = None,
        bindings: Sequence[HostBinding] = (),
        **settings: object,
    ) -> None:
        self._atoll = Atoll(data, port=port, bindings=bindings, **settings)
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="atoll", daemon=True)
        self._deployed: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._wait(self._atoll.__aenter__())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._wait(self._atoll.__aexit__(None, None, None))
        finally:
            self._end()

    def deploy(self, name: str, script: str | None = None, **fields: object) -> TestWorker:
        """Deploy a worker, or a new version of one that exists."""
        worker = self._wait(self._atoll.deploy(name, script, **fields))
        self._deployed.append(name)
        return TestWorker(self, name, worker.facts)

    def delete(self, name: str) -> None:
        self._wait(self._atoll.delete(name))

    def fetch(self, url: str, *, method: str = "GET", headers: Headers | None = None, body: Body = b"") -> Response:
        """Send a request to the worker of a URL."""
        return self._wait(self._atoll.fetch(url, method=method, headers=headers, body=body))

    def logs(self, name: str, **question: object) -> list[dict[str, Any]]:
        return self._wait(self._atoll.logs(name, **question))

    def api(self, method: str, path: str, body: object = None) -> Any:
        """Send any request to the control API."""
        return self._wait(self._atoll.api(method, path, body))

    def url(self, name: str, path: str = "/") -> str:
        return self._atoll.url(name, path)

    @property
    def port(self) -> int:
        return self._atoll.port

    def forget(self) -> None:
        """Delete the workers that were deployed since the last call."""
        names, self._deployed = dict.fromkeys(self._deployed), []
        for name in names:
            if self._atoll.node.deployer.named(name) is not None:
                self.delete(name)

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(SECONDS)

    def _end(self) -> None:
        self._wait(_rest())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _rest() -> None:
    """Shut down the loop's generators and executor before it is closed."""
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


@pytest.fixture(scope="session")
def atoll_settings() -> dict[str, object]:
    """Settings of the node; override it in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def atoll_node(atoll_settings: dict[str, object]) -> Iterator[TestNode]:
    """The node of the session."""
    with TestNode(**atoll_settings) as node:  # type: ignore[arg-type]  # the user's settings, checked by the node
        yield node


@pytest.fixture
def atoll(atoll_node: TestNode) -> Iterator[TestNode]:
    """The node of the session, without the workers of other tests."""
    yield atoll_node
    atoll_node.forget()
