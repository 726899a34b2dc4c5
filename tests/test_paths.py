"""Routes of one host by path: the same answers as trying all rules in turn, longest first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atoll.paths import PathRule, PathTable
from atoll.workers import Version

PATH = st.text("/ab", max_size=4).map(lambda text: ("/" + text).encode())
TENANTS = ("one", "two")
VERSIONS = [None, *(Version(f"v{i}", "w", "w", TENANTS[i % 2], (), "m.js") for i in range(4))]
RULES = st.dictionaries(st.tuples(PATH, st.booleans()), st.sampled_from(VERSIONS), max_size=12).map(
    lambda found: [PathRule(path, is_prefix, version) for (path, is_prefix), version in found.items()]
)


def one_by_one(rules: list[PathRule], target: bytes) -> PathRule | None:
    ordered = sorted(rules, key=lambda rule: (-len(rule.path), rule.is_prefix))
    return next((rule for rule in ordered if rule.matches(target)), None)


@given(RULES, st.lists(PATH, max_size=8), st.data())
def test_a_table_gives_the_same_answers_as_trying_every_rule(
    rules: list[PathRule], targets: list[bytes], data: st.DataObject
) -> None:
    table = PathTable(rules)
    assert len(table) == len(rules)
    assert [table.find(target) for target in targets] == [one_by_one(rules, target) for target in targets]
    dropped = data.draw(st.lists(st.sampled_from(rules), unique_by=id)) if rules else []
    for rule in dropped:
        table.drop(rule)
    left = [rule for rule in rules if rule not in dropped]
    assert len(table) == len(left)
    assert [table.find(target) for target in targets] == [one_by_one(left, target) for target in targets]


@given(RULES, PATH)
def test_rules_of_other_tenants_can_be_left_out(rules: list[PathRule], target: bytes) -> None:
    left = [rule for rule in rules if rule.version is None or rule.version.tenant == "one"]
    assert PathTable(rules).of_tenant("one").find(target) == one_by_one(left, target)
    if len(left) == len(rules):
        table = PathTable(rules)
        assert table.of_tenant("one") is table
