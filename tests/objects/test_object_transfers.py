"""Classes that are renamed and moved to other workers, by migrations and by `exports`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from atoll.project.read import read_project
from tests.running import Atoll

SOURCE = """
import { DurableObject } from "cloudflare:workers";
const WHO = "%s";
const make = () => class extends DurableObject {
  async count() { const n = ((await this.ctx.storage.get("n")) ?? 0) + 1; await this.ctx.storage.put("n", n); return [WHO, n]; }
  async alarmIn(ms) { await this.ctx.storage.setAlarm(Date.now() + ms); }
  async alarm() { await this.ctx.storage.put("alarmed", WHO); }
  alarmed() { return this.ctx.storage.get("alarmed"); }
};
%s
export default {
  async fetch(request, env) {
    const [binding, method, ...args] = await request.json();
    try { return Response.json((await env[binding].getByName("a")[method](...args)) ?? null); }
    catch (error) { return Response.json({ error: error.message }); }
  },
};
"""


def source(who: str, *classes: str) -> str:
    return SOURCE % (who, "\n".join(f"export class {name} extends make() {{}}" for name in classes))


def bound(name: str, class_name: str, script: str = "") -> dict[str, str]:
    found = {"type": "durable_object", "name": name, "class_name": class_name}
    return found | {"script_name": script} if script else found


def ask(node: Atoll, worker: str, *args: Any) -> Any:
    answer = node.post(worker, "/", json.dumps(args), {"content-type": "application/json"})
    assert answer.status == 200, answer.text
    return answer.json


def refused(node: Atoll, name: str, script: str, **fields: Any) -> str:
    is_there = node.control("GET", f"/api/workers/{name}").status == 200
    how = ("PUT", f"/api/workers/{name}") if is_there else ("POST", "/api/workers")
    answer = node.control(*how, {"script": script, **({} if is_there else {"name": name}), **fields})
    assert answer.status in (400, 422), answer.text
    error = answer.json["error"]
    assert error["hint"], error
    return str(error["message"])


def new(*names: str) -> list[dict[str, Any]]:
    return [{"tag": "v1", "new_sqlite_classes": list(names)}]


def exports(**classes: Any) -> list[dict[str, Any]]:
    return [{"exports": classes}]


SQLITE = {"storage": "sqlite"}


def test_a_transferred_class_keeps_its_objects_and_old_bindings_lead_to_them(new_atoll: Any) -> None:
    node: Atoll = new_atoll()
    node.deploy("from", source("from", "Old"), bindings=[bound("O", "Old")], migrations=new("Old"))
    node.deploy("user", source("user"), bindings=[bound("O", "Old", "from")])
    assert ask(node, "from", "O", "count") == ["from", 1]
    assert ask(node, "user", "O", "count") == ["from", 2]
    ask(node, "from", "O", "alarmIn", 300)
    moved = [{"tag": "t1", "transferred_classes": [{"from": "Old", "from_script": "from", "to": "New"}]}]
    node.deploy("to", source("to", "New"), bindings=[bound("N", "New")], migrations=moved)
    assert ask(node, "to", "N", "count") == ["to", 3]
    assert ask(node, "from", "O", "count") == ["to", 4], "the old binding leads to the new worker"
    assert ask(node, "user", "O", "count") == ["to", 5]
    node.wait_until(lambda: ask(node, "to", "N", "alarmed") == "to", 10)
    # The old worker deploys again, with its old binding and without the class.
    node.deploy("from", source("from again"), bindings=[bound("O", "Old")], migrations=new("Old"))
    assert ask(node, "from", "O", "count") == ["to", 6]
    node.stop()
    node.start()
    assert ask(node, "user", "O", "count") == ["to", 7], "after a restart as well"
    assert node.control("DELETE", "/api/workers/from").status == 204
    assert ask(node, "to", "N", "count") == ["to", 8], "the objects are not those of the deleted worker"
    shown = node.control("GET", "/api/objects").json["namespaces"]
    assert [(each["worker"], each["class_name"], each["objects"]) for each in shown] == [("to", "New", 1)]


def test_transfers_that_cannot_be_are_refused(atoll: Atoll) -> None:
    def moved(old: str, script: str, to: str = "New") -> dict[str, Any]:
        steps = [{"tag": "t1", "transferred_classes": [{"from": old, "from_script": script, "to": to}]}]
        return {"migrations": steps, "bindings": [bound("N", to)]}

    atoll.deploy(
        "object-keeper", source("object-keeper", "Kept"), bindings=[bound("K", "Kept")], migrations=new("Kept")
    )
    script = source("object-taker", "New")
    none = "Cannot apply transferred_classes migration to non-existent class Absent of script object-keeper"
    assert refused(atoll, "object-taker", script, **moved("Absent", "object-keeper")) == none
    assert "non-existent class Kept of script nobody" in refused(
        atoll, "object-taker", script, **moved("Kept", "nobody")
    )
    assert "from_script" in refused(atoll, "object-taker", script, **moved("Kept", "No Name"))
    message = refused(atoll, "object-taker", source("object-taker"), **moved("Kept", "object-keeper"))
    assert message == "the worker does not export the Durable Object class New"
    twice = [{"tag": "a", "new_classes": ["New"]}, *moved("Kept", "object-keeper")["migrations"]]
    message = refused(atoll, "object-taker", script, migrations=twice)
    assert message == "Cannot apply transferred_classes migration to existing class New"
    assert ask(atoll, "object-keeper", "K", "count") == ["object-keeper", 1], "nothing was moved"


def test_a_renamed_class_is_still_reached_by_its_old_name(atoll: Atoll) -> None:
    atoll.deploy("renaming", source("r", "Old"), bindings=[bound("O", "Old")], migrations=new("Old"))
    atoll.deploy("renaming-user", source("u"), bindings=[bound("O", "Old", "renaming")])
    assert ask(atoll, "renaming-user", "O", "count") == ["r", 1]
    steps = [*new("Old"), {"tag": "v2", "renamed_classes": [{"from": "Old", "to": "New"}]}]
    atoll.deploy("renaming", source("r2", "New"), bindings=[bound("O", "New")], migrations=steps)
    assert ask(atoll, "renaming-user", "O", "count") == ["r2", 2]


def test_exports_create_rename_and_delete_classes(atoll: Atoll) -> None:
    def deploy(script: str, classes: list[dict[str, Any]], *bindings: dict[str, str]) -> None:
        atoll.deploy("declared", script, bindings=list(bindings), migrations=classes)

    deploy(source("1", "Counter"), exports(Counter=SQLITE), bound("C", "Counter"))
    assert ask(atoll, "declared", "C", "count") == ["1", 1]
    deploy(source("2", "Counter"), exports(Counter=SQLITE), bound("C", "Counter"))
    assert ask(atoll, "declared", "C", "count") == ["2", 2]
    renamed = exports(Counter={"state": "renamed", "renamed_to": "Tally"}, Tally=SQLITE)
    deploy(source("3", "Tally"), renamed, bound("C", "Tally"))
    assert ask(atoll, "declared", "C", "count") == ["3", 3]
    deploy(source("4", "Tally"), renamed, bound("C", "Tally"))
    deploy(source("5", "Tally"), exports(Tally=SQLITE), bound("C", "Tally"))
    assert ask(atoll, "declared", "C", "count") == ["5", 4]
    deploy(source("6"), exports(Tally={"state": "deleted"}))
    assert not [each for each in classes_of(atoll) if each[0] == "declared"]
    deploy(source("7"), exports(Tally={"state": "deleted"}))  # an entry that was applied has no effect
    deploy(source("8", "Tally"), exports(Tally=SQLITE), bound("C", "Tally"))
    assert ask(atoll, "declared", "C", "count") == ["8", 1]


def classes_of(node: Atoll) -> list[tuple[str, str]]:
    return [(each["worker"], each["class_name"]) for each in node.control("GET", "/api/objects").json["namespaces"]]


def test_exports_move_a_class_in_two_deploys(atoll: Atoll) -> None:
    atoll.deploy("first", source("first", "Box"), bindings=[bound("B", "Box")], migrations=exports(Box=SQLITE))
    assert ask(atoll, "first", "B", "count") == ["first", 1]
    message = refused(atoll, "first", source("first"), migrations=gone("second"))
    assert "[transferred_target_missing]" in message and "(100402)" in message
    expects = {"storage": "sqlite", "state": "expecting-transfer", "transfer_from": "first"}
    second = {"bindings": [bound("B", "Box")], "migrations": exports(Box=expects)}
    atoll.deploy("second", source("second", "Box"), **second)
    assert ask(atoll, "second", "B", "count") == ["first", 2], "until then the binding leads to the first worker"
    atoll.deploy("first", source("first"), bindings=[bound("B", "Box", "second")], migrations=gone("second"))
    assert ask(atoll, "second", "B", "count") == ["second", 3]
    assert ask(atoll, "first", "B", "count") == ["second", 4]
    atoll.deploy("second", source("second again", "Box"), bindings=[bound("B", "Box")], migrations=exports(Box=SQLITE))
    assert ask(atoll, "first", "B", "count") == ["second again", 5]


def gone(target: str) -> list[dict[str, Any]]:
    return exports(Box={"state": "transferred", "transferred_to": target})


def test_exports_that_cannot_be_are_refused(atoll: Atoll) -> None:
    name, script = "refusing", source("r", "A", "B")
    atoll.deploy(name, script, bindings=[bound("A", "A")], migrations=exports(A=SQLITE, B={"storage": "legacy-kv"}))
    atoll.deploy("refusing-user", source("u"), bindings=[bound("A", "A", name)])

    def no(*, code: str = script, **classes: Any) -> str:
        return refused(atoll, name, code, migrations=exports(**classes))

    kv = {"storage": "legacy-kv"}
    assert "[provisioned_class_missing_from_config] class 'B'" in no(A=SQLITE)
    assert "[storage_type_mismatch] class 'A'" in no(A=kv, B=kv)
    assert "[config_references_nonexistent_class] class 'C'" in no(A=SQLITE, B=kv, C=SQLITE)
    assert "[config_export_not_in_code] class 'B'" in no(code=source("r", "A"), A=SQLITE, B=kv)
    assert "[tombstone_delete_class_still_in_code] class 'B'" in no(A=SQLITE, B={"state": "deleted"})
    blocked = no(code=source("r", "B"), A={"state": "deleted"}, B=kv)
    assert "[tombstone_delete_blocked_by_external_bindings] class 'A'" in blocked and "refusing-user" in blocked
    assert "[tombstone_renamed_to_occupied] class 'A'" in no(A={"state": "renamed", "renamed_to": "B"}, B=kv)
    moving = {"state": "transferred", "transferred_to": "refusing-user"}
    assert "[transferred_target_missing]" in no(A=moving, B=kv)
    expects = {"storage": "sqlite", "state": "expecting-transfer", "transfer_from": "nobody"}
    assert "[phase_one_transfer_source_namespace_missing]" in no(
        code=source("r", "A", "B", "C"), A=SQLITE, B=kv, C=expects
    )
    both = [*exports(A=SQLITE), *new("A")]
    assert refused(atoll, name, script, migrations=both) == "`migrations` and `exports` are both set"
    back = refused(atoll, name, script, migrations=new("A"))
    assert "cannot return to `migrations` (100406)" in back
    for wrong in (
        {"A": {"storage": "other"}}, {"A": {}}, {"A": {"state": "odd"}}, {"A": {"state": "renamed", "renamed_to": "A"}},
        {"A": {"state": "renamed"}}, {"A": {"state": "deleted", "storage": "sqlite"}}, {"a b": SQLITE},
        {"A": {"state": "transferred", "transferred_to": "No Name"}}, {"A": {"state": "renamed", "renamed_to": "X"}},
    ):  # fmt: skip
        assert refused(atoll, name, script, migrations=[{"exports": wrong}])


def test_a_rollback_does_not_undo_exports(atoll: Atoll) -> None:
    atoll.deploy("rolling", source("1", "A"), bindings=[bound("A", "A")], migrations=exports(A=SQLITE))
    assert ask(atoll, "rolling", "A", "count") == ["1", 1]
    renamed = exports(A={"state": "renamed", "renamed_to": "B"}, B=SQLITE)
    atoll.deploy("rolling", source("2", "B"), bindings=[bound("A", "B")], migrations=renamed)
    answer = atoll.control("POST", "/api/workers/rolling/rollback", {})
    assert answer.status == 422 and "(100405)" in answer.json["error"]["message"], answer.text
    assert ask(atoll, "rolling", "A", "count") == ["2", 2]


def test_migrations_can_be_replaced_by_exports(atoll: Atoll) -> None:
    atoll.deploy("moving", source("1", "A"), bindings=[bound("A", "A")], migrations=new("A"))
    assert ask(atoll, "moving", "A", "count") == ["1", 1]
    atoll.deploy("moving", source("2", "A"), bindings=[bound("A", "A")], migrations=exports(A=SQLITE))
    assert ask(atoll, "moving", "A", "count") == ["2", 2]


def test_exports_of_a_config_become_those_of_a_deploy(tmp_path: Path) -> None:
    def read(**fields: Any) -> tuple[Any, list[str]]:
        (tmp_path / "wrangler.json").write_text(
            json.dumps({"name": "a", "main": "w.js", "compatibility_date": "2026-01-01", **fields})
        )
        (tmp_path / "w.js").write_text(source("a"))
        project = read_project(tmp_path)
        return project.triggers.get("migrations"), [f"{each.field} {each.text}" for each in project.findings]

    counter = {"type": "durable-object", "storage": "sqlite"}
    old = {"type": "durable-object", "state": "renamed", "renamed_to": "Counter"}
    declared = {"Counter": {"storage": "sqlite"}, "Old": {"state": "renamed", "renamed_to": "Counter"}}
    assert read(exports={"Counter": counter, "Old": old, "Api": {"type": "worker"}}) == ([{"exports": declared}], [])
    _, findings = read(exports={"Counter": counter}, migrations=new("Counter"))
    assert findings == ["exports `migrations` and `exports` are both set"]
    assert read(exports={"Flow": {"type": "workflow"}})[1] == ["exports.Flow the type 'workflow' is not supported"]
    moved = [{"tag": "v1", "transferred_classes": [{"from": "A", "from_script": "b", "to": "C"}]}]
    assert read(migrations=moved) == (moved, [])
