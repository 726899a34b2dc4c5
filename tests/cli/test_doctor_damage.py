"""A damaged object is refused alone, and `atoll doctor` names it: over the API, and in a data folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.test_projects import run
from tests.objects.worker_under_test import deploy
from tests.objects.worker_under_test import run as call
from tests.running import Atoll


def test_a_damaged_object_is_named_and_all_others_serve(new_atoll: Callable[..., Atoll], tmp_path: Path) -> None:
    node = new_atoll()
    deploy(node, "hurt")
    for name in ("a", "b"):
        call(node, "hurt", f'return await counter("{name}").increment()')
    ids = call(node, "hurt", 'return ["a", "b"].map((name) => env.COUNTER.idFromName(name).toString())')
    data = node.folder
    node.stop()
    (file,) = data.rglob(ids[0])
    whole = file.read_bytes()
    file.write_bytes(whole[:100] + b"?" + whole[101:])
    (other,) = data.rglob(ids[1])
    content = other.read_bytes()
    other.unlink()
    where = (data / "objects") if (data / "objects").is_dir() else next(data.rglob("objects"))
    said = run(tmp_path, "doctor", "--data", str(where.parent), code=1).stdout
    assert f"the Durable Object {ids[1]} is refused: its file" in said and "restore a backup" in said
    other.write_bytes(content)
    node.start()
    assert call(node, "hurt", 'return await counter("b").value()') == 1
    assert (
        call(node, "hurt", 'return await counter("a").value()')["message"] == "Durable Object storage cannot be read."
    )
    assert call(node, "hurt", 'return await counter("b").increment()') == 2
    [found] = node.control("GET", "/api/damage").json["objects"]
    assert (found["id"], found["worker"], found["class_name"]) == (ids[0], "hurt", "Counter")
    said = run(tmp_path, "doctor", "--no-sandbox", "--api", f"http://localhost:{node.port}", code=1).stdout
    assert f"the Durable Object hurt Counter {ids[0]} is refused: the first page" in said
    assert f"atoll objects delete hurt Counter {ids[0]}" in said
    node.stop()
    said = run(tmp_path, "doctor", "--data", str(where.parent), code=1).stdout
    assert f"the Durable Object {ids[0]} is refused: the first page" in said
