"""Durable Objects in a real node: ids, stubs, gates, storage, resets, alarms, migrations."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.objects.worker_under_test import BINDINGS, MIGRATIONS, SOURCE, ask, deploy, run
from tests.running import Atoll

names = (f"object-{number}" for number in itertools.count())
NAME = "objects"


@pytest.fixture(scope="module")
def node(atoll: Atoll) -> Atoll:
    deploy(atoll, NAME)
    return atoll


@pytest.fixture
def name() -> Iterator[str]:
    yield next(names)


def call(node: Atoll, name: str, method: str, *args: Any) -> Any:
    given = ", ".join(map(json.dumps, args))
    return run(node, NAME, f"return await counter({json.dumps(name)}).{method}({given});")


def test_a_counter_counts_and_each_object_has_its_own_storage(node: Atoll, name: str) -> None:
    assert [call(node, name, "increment") for _ in range(3)] == [1, 2, 3]
    assert call(node, name + "-other", "increment") == 1
    assert call(node, name, "value") == 3


def test_fetch_reaches_an_object_by_name_or_by_id(node: Atoll, name: str) -> None:
    code = f"""
      const id = env.COUNTER.idFromName("{name}");
      const response = await env.COUNTER.get(id).fetch("http://any/path", {{ method: "POST", body: "x" }});
      const again = await env.COUNTER.get(env.COUNTER.idFromString(id.toString())).fetch("http://any/");
      return [response.status, await response.text(), await again.text(), id.equals(env.COUNTER.idFromName("{name}"))];
    """
    assert run(node, NAME, code) == [202, f"POST /path {name}", f"GET / {name}", True]


def test_ids_prove_their_namespace(node: Atoll) -> None:
    code = """
      const thrown = (run) => { try { return run(); } catch (error) { return `${error.name}: ${error.message}`; } };
      const other = env.PLAIN.newUniqueId().toString();
      return [
        env.COUNTER.newUniqueId().toString().length,
        thrown(() => env.COUNTER.idFromString("abc")),
        thrown(() => env.COUNTER.idFromString(other)),
        thrown(() => env.COUNTER.get(env.PLAIN.newUniqueId())),
        thrown(() => env.COUNTER.jurisdiction("eu").get(env.COUNTER.newUniqueId())),
        thrown(() => env.COUNTER.getByName("a", { routingMode: "other" })),
        env.COUNTER.jurisdiction("eu").idFromName("a").equals(env.COUNTER.idFromName("a")),
        env.COUNTER.idFromString(env.COUNTER.newUniqueId({ jurisdiction: "eu" }).toString()).jurisdiction,
      ];
    """
    assert run(node, NAME, code) == [
        64,
        "TypeError: Invalid Durable Object ID: must be 64 hex digits",
        "TypeError: Durable Object ID is not valid for this namespace.",
        "TypeError: Durable Object ID is not valid for this namespace.",
        "TypeError: get called on jurisdictional subnamespace with an ID from a different jurisdiction",
        "RangeError: unknown routingMode: other",
        False,
        "eu",
    ]


def test_an_exception_fails_only_its_call(node: Atoll, name: str) -> None:
    call(node, name, "remember", 7)
    failed = call(node, name, "fail")
    assert failed == {"error": "RangeError", "message": "out of range", "remote": True}
    assert call(node, name, "recall") == 7


def test_a_class_that_does_not_extend_durable_object_has_fetch_and_no_methods(node: Atoll) -> None:
    code = 'return (await env.PLAIN.getByName("a").fetch("http://x/")).json();'
    answer = run(node, NAME, code)
    assert answer["n"] == 1
    assert answer["sql"].startswith("SQL is not enabled for this Durable Object class.")
    failed = run(node, NAME, 'return env.PLAIN.getByName("a").method();')
    assert failed["message"].startswith("The receiving Durable Object does not support RPC")


def test_calls_on_one_stub_arrive_in_order(node: Atoll, name: str) -> None:
    code = f"""
      const stub = counter("{name}");
      return Promise.all(Array.from({{ length: 50 }}, () => stub.increment()));
    """
    assert run(node, NAME, code) == list(range(1, 51))


def test_a_critical_section_keeps_other_events_out(node: Atoll, name: str) -> None:
    code = f"""
      const stub = counter("{name}");
      await stub.step("first");
      const [, steps] = await Promise.all([stub.section("section"), stub.step("other")]);
      return steps;
    """
    steps = run(node, NAME, code)
    assert steps[2:] == ["section begins", "section ends", "other begins", "other ends"]
    concurrent = run(
        node, NAME, f'const s = counter("{name}2"); return (await Promise.all([s.step("a"), s.step("b")]))[1];'
    )
    assert concurrent == ["a begins", "b begins", "a ends", "b ends"]


def test_a_critical_section_that_throws_resets_the_object(node: Atoll, name: str) -> None:
    call(node, name, "remember", 7)
    failed = call(node, name, "brokenSection")
    assert failed == {"error": "TypeError", "message": "section threw", "remote": True, "reset": True}
    assert call(node, name, "recall") == 0
    assert call(node, name, "nest", 64) == 0
    assert "nested too deeply" in call(node, name, "nest", 65)["message"]


def test_a_constructor_that_throws_fails_the_event_and_the_next_one_constructs_anew(node: Atoll, name: str) -> None:
    call(node, name, "put", "throw in constructor", True)
    call(node, name, "brokenSection")
    failed = call(node, name, "recall")
    assert (failed["error"], failed["message"]) == ("RangeError", "constructor threw")
    assert call(node, name, "recall")["message"] == "constructor threw"


def test_a_transaction_that_throws_is_rolled_back(node: Atoll, name: str) -> None:
    assert call(node, name, "rolledBack") == ["undo", ["kept"]]


def test_abort_resets_the_object_and_drops_what_was_not_committed(node: Atoll, name: str) -> None:
    call(node, name, "increment")
    call(node, name, "remember", 7)
    assert call(node, name, "abort") == {
        "error": "Error",
        "message": "Application called abort() to reset Durable Object.",
        "remote": True,
        "reset": True,
    }
    assert call(node, name, "abort", "my reason")["message"] == "my reason"
    assert (call(node, name, "value"), call(node, name, "recall")) == (1, 0)


def test_an_alarm_runs_once_and_is_gone(node: Atoll, name: str) -> None:
    assert call(node, name, "alarmIn", 50) > 0
    node.wait_until(lambda: call(node, name, "alarms")[0])
    node.wait_until(lambda: call(node, name, "alarms") == [[{"retry": False, "count": 0, "during": None}], None])


def test_an_alarm_that_fails_is_tried_again(node: Atoll, name: str) -> None:
    call(node, name, "alarmIn", 10, 1)
    node.wait_until(lambda: len(call(node, name, "alarms")[0]) >= 1, 15)
    # What a failed alarm wrote before it threw is kept: it was another turn.
    node.wait_until(lambda: call(node, name, "alarms")[0][-1]["retry"], 15)
    assert call(node, name, "alarms")[0][-1]["count"] == 1


def test_a_new_version_resets_objects_and_keeps_what_they_stored(atoll: Atoll) -> None:
    deploy(atoll, "updated")
    run(atoll, "updated", 'const s = counter("a"); await s.increment(); await s.remember(7); return 1;')
    failed: list[Any] = []
    waits = 'return counter("a").wait();'
    source = SOURCE.replace("version()", "wait() { return new Promise((r) => setTimeout(r, 20_000)); } version()")
    deploy(atoll, "updated", source)
    thread = threading.Thread(target=lambda: failed.append(run(atoll, "updated", waits)))
    thread.start()
    atoll.wait_until(lambda: live(atoll, "updated"))
    deploy(atoll, "updated", SOURCE.replace("VERSION = 1", "VERSION = 2"))
    thread.join()
    assert failed[0]["message"] == "Durable Object reset because its code was updated."
    assert failed[0]["reset"] is True
    assert run(
        atoll, "updated", 'const s = counter("a"); return [await s.value(), await s.recall(), await s.version()];'
    ) == [1, 0, 2]


def live(node: Atoll, worker: str) -> int:
    found = node.control("GET", "/api/objects").json["namespaces"]
    return sum(each["live"] for each in found if each["worker"] == worker)


def test_objects_are_listed_and_deleted(atoll: Atoll) -> None:
    deploy(atoll, "listed")
    run(atoll, "listed", 'await counter("a").increment(); return counter("b").increment();')
    page = atoll.control("GET", "/api/objects/listed/Counter").json
    assert len(page["objects"]) == 2
    found = run(atoll, "listed", 'return env.COUNTER.idFromName("a").toString();')
    assert atoll.control("DELETE", f"/api/objects/listed/Counter/{found}").status == 204
    assert atoll.control("DELETE", f"/api/objects/listed/Counter/{'0' * 64}").status == 404
    assert run(atoll, "listed", 'return [await counter("a").value() ?? null, await counter("b").value()];') == [None, 1]
    assert atoll.control("GET", "/api/objects/listed/Nothing").status == 404


def refused(node: Atoll, **fields: Any) -> tuple[str, str]:
    body = {"name": "refused", "script": SOURCE, "bindings": BINDINGS, "migrations": MIGRATIONS, **fields}
    answer = node.control("POST", "/api/workers", body)
    assert answer.status == 422, answer.text
    error = answer.json["error"]
    return error["message"], error.get("hint", "")


def test_deploys_that_cannot_have_their_classes_are_refused(atoll: Atoll) -> None:
    message, hint = refused(atoll, migrations=[])
    assert message.startswith("Cannot create binding for class Counter because it is not currently configured")
    assert "new_sqlite_classes" in hint
    new = [{"tag": "v1", "new_sqlite_classes": ["Counter", "Plain", "Absent"]}]
    assert refused(atoll, migrations=new)[0] == "the worker does not export the Durable Object class Absent"
    twice = [*MIGRATIONS, {"tag": "v2", "new_classes": ["Counter"]}]
    assert refused(atoll, migrations=twice)[0] == "Cannot apply new_classes migration to existing class Counter"
    gone = [*MIGRATIONS, {"tag": "v2", "deleted_classes": ["Nothing"]}]
    assert refused(atoll, migrations=gone)[0] == "Cannot apply deleted_classes migration to non-existent class Nothing"
    bound = [*MIGRATIONS, {"tag": "v2", "deleted_classes": ["Plain"]}]
    assert "without also removing the binding" in refused(atoll, migrations=bound)[0]
    other = [{"type": "durable_object", "name": "X", "class_name": "Counter", "script_name": "nobody"}]
    assert refused(atoll, bindings=other)[0] == "the worker `nobody` has no Durable Object class Counter"
    assert "isolation" in refused(atoll, isolation="context")[0]


def test_renamed_classes_keep_their_objects_and_deleted_ones_lose_them(atoll: Atoll) -> None:
    deploy(atoll, "migrating")
    run(atoll, "migrating", 'return counter("a").increment();')
    renamed = [*MIGRATIONS, {"tag": "v2", "renamed_classes": [{"from": "Counter", "to": "Renamed"}]}]
    bindings = [{"type": "durable_object", "name": "COUNTER", "class_name": "Renamed"}, BINDINGS[1]]
    source = SOURCE.replace("class Counter", "class Renamed")
    deploy(atoll, "migrating", source, bindings=bindings, migrations=renamed)
    assert run(atoll, "migrating", 'return counter("a").increment();') == 2
    deleted = [*renamed, {"tag": "v3", "deleted_classes": ["Renamed"]}]
    deploy(atoll, "migrating", source, bindings=BINDINGS[1:], migrations=deleted)
    again = [*deleted, {"tag": "v4", "new_sqlite_classes": ["Renamed"]}]
    deploy(atoll, "migrating", source, bindings=bindings, migrations=again)
    assert run(atoll, "migrating", 'return counter("a").increment();') == 1


def test_another_worker_reaches_the_objects_by_script_name(node: Atoll, name: str) -> None:
    call(node, name, "increment")
    script = """export default { async fetch(request, env) {
      return Response.json(await env.C.getByName(new URL(request.url).pathname.slice(1)).increment());
    } };"""
    binding = {"type": "durable_object", "name": "C", "class_name": "Counter", "script_name": NAME}
    node.deploy("object-user", script, bindings=[binding])
    assert node.get("object-user", f"/{name}").json == 2


def test_deleting_a_worker_deletes_its_objects(atoll: Atoll) -> None:
    deploy(atoll, "deleted")
    run(atoll, "deleted", 'return counter("a").increment();')
    assert atoll.control("DELETE", "/api/workers/deleted").status == 204
    deploy(atoll, "deleted")
    assert run(atoll, "deleted", 'return counter("a").increment();') == 1


def test_ordinary_errors_of_a_stub_are_reported(node: Atoll, name: str) -> None:
    assert call(node, name, "absent")["message"] == 'The RPC receiver does not implement the method "absent".'
    assert ask(node, NAME, 'return counter("a").alarm();').json["message"].startswith("'alarm' is a reserved method")
