"""Point-in-time recovery as the code of an object uses it, in a real node."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable
from typing import Any

from tests.objects.worker_under_test import deploy, run
from tests.running import Atoll

NAME = "time-machine"
FORM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}")


def call(node: Atoll, name: str, method: str, *args: Any) -> Any:
    given = ", ".join(map(json.dumps, args))
    return run(node, NAME, f"return await counter({json.dumps(name)}).{method}({given});")


def test_an_object_is_restored_at_its_next_start_and_back_again(atoll: Atoll) -> None:
    deploy(atoll, NAME)
    call(atoll, "a", "put", "x", 1)
    before = time.time() * 1000
    first = call(atoll, "a", "bookmark")
    call(atoll, "a", "add", "one")
    call(atoll, "a", "put", "x", 2)
    second = call(atoll, "a", "bookmark")
    assert FORM.fullmatch(first) and FORM.fullmatch(second) and first < second
    assert call(atoll, "a", "bookmark") > second
    undo = call(atoll, "a", "onNextStart", first)
    assert undo > second
    assert call(atoll, "a", "list") == [["x", 2]], "until it starts again"
    assert call(atoll, "a", "abort", "again")["message"] == "again"
    assert call(atoll, "a", "list") == [["x", 1]]
    assert "no such table" in call(atoll, "a", "ids")["message"]
    call(atoll, "a", "onNextStart", undo)
    call(atoll, "a", "abort", "again")
    assert (call(atoll, "a", "list"), call(atoll, "a", "ids")) == ([["x", 2]], ["one"])
    assert call(atoll, "a", "bookmarkAt", before + 60_000) < call(atoll, "a", "bookmark")
    past = call(atoll, "a", "bookmarkAt", before)
    assert past <= first
    assert call(atoll, "a", "bookmarkAt", "soon")["error"] == "TypeError"


def test_bookmarks_of_others_are_refused(atoll: Atoll) -> None:
    deploy(atoll, NAME)
    call(atoll, "b", "put", "x", 1)
    call(atoll, "c", "put", "x", 1)
    for wrong in (call(atoll, "c", "bookmark"), "", "0" * 8, None):
        assert call(atoll, "b", "onNextStart", wrong)["message"] == "This is not a bookmark of this object."
    call(atoll, "b", "abort", "again")
    assert call(atoll, "b", "list") == [["x", 1]]


def test_a_wish_survives_a_kill_of_the_node(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll()
    deploy(node, NAME)
    call(node, "a", "put", "x", 1)
    first = call(node, "a", "bookmark")
    call(node, "a", "put", "x", 2)
    undo = call(node, "a", "onNextStart", first)
    node.stop(signal.SIGKILL)
    node.start()
    assert call(node, "a", "list") == [["x", 1]]
    call(node, "a", "onNextStart", undo)
    node.stop(signal.SIGKILL)
    node.start()
    assert call(node, "a", "list") == [["x", 2]]
