"""After a restart, recently used workers are loaded before their first request."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from atoll.engine.loaded import warming
from tests.running import Atoll

HELLO = 'export default { fetch() { return new Response("hello"); } }'


def pool(node: Atoll) -> dict[str, float]:
    found: dict[str, float] = json.loads(node.control("GET", "/admin/pool").text)
    return found


def remembered(node: Atoll) -> list[str]:
    path = next(node.folder.rglob("recent.json"), None)
    return warming.read(path) if path is not None else []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_first_request_after_a_restart_finds_its_worker_loaded(
    new_atoll: Callable[..., Atoll], number: int
) -> None:
    node = new_atoll(engines=1)
    for name in ("used", "unused"):
        node.deploy(name, HELLO)
        assert node.get(name).text == "hello"
    node.control("DELETE", "/api/workers/unused")
    if number == signal.SIGKILL:
        node.wait_until(lambda: len(remembered(node)) >= 1, 30)
    node.stop(number)
    node.start()
    node.wait_until(lambda: pool(node)["cached"] == 1, 20)
    assert node.get("used").text == "hello"
    assert pool(node)["hit_rate"] == 1.0
    assert node.stop() == 0


def test_an_invalid_list_counts_as_empty(tmp_path: Path) -> None:
    path = tmp_path / "recent.json"
    assert warming.read(path) == []
    for text in ("", "{}", '[1, "a"]', '["a"', "\x00"):
        path.write_text(text)
        assert warming.read(path) == []
    path.write_text(json.dumps([str(n) for n in range(1000)]))
    assert len(warming.read(path)) == warming.REMEMBERED
