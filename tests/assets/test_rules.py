"""run_worker_first, _headers, _redirects: what is accepted, what is refused and why, and what the rules do."""

from __future__ import annotations

import time

import pytest

from atoll.assets.headers_file import MAX_SETS, MAX_WARNINGS, apply_headers, parse_headers
from atoll.assets.patterns import AssetPattern, BadRule
from atoll.assets.redirects_file import parse_redirects
from atoll.assets.rules import AssetRules, BadAssets, check_first, check_rules, matches_rule


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([], "empty list"),
        ([f"/{n}" for n in range(101)], "rules were provided; 101 rules provided exceeds max of 100."),
        (["!/a"], "Only negative `run_worker_first` rules were provided; must provide at least 1 non-negative rule"),
        (["a"], "Invalid routes in `run_worker_first`:\n'a': rules start with '/' or '!/'"),
        (["/" + "a" * 100], "longer than 100 characters"),
        (["/a", "/a"], "given twice"),
        (["/a/*", "/a/b"], "'/a/*' already covers it"),
    ],
)  # fmt: skip
def test_rules_of_run_worker_first_that_are_refused(rules: list[str], said: str) -> None:
    with pytest.raises(BadAssets) as refused:
        check_first(rules)
    assert said in str(refused.value) and refused.value.hint


def test_values_that_do_not_exist_are_refused() -> None:
    for wrong in (
        AssetRules("no id"),
        AssetRules("0" * 64, html_handling="maybe"),
        AssetRules("0" * 64, not_found_handling="302"),
        AssetRules("0" * 64, headers="x" * (1 << 20) + "x"),
        AssetRules("0" * 64, headers="\n" * 10_001),
        AssetRules("0" * 64, redirects="#\u2028" * 10_001),
    ):
        with pytest.raises(BadAssets) as refused:
            check_rules(wrong)
        assert refused.value.hint
    check_rules(AssetRules("0" * 64, run_worker_first=("/*", "!/a/*")))


def test_a_star_in_a_rule_is_any_text() -> None:
    for rule, path, fits in (
        ("/a", "/a", True), ("/a", "/a/", False), ("/a/*", "/a/", True), ("/a/*", "/a", False), ("/*", "/", True),
        ("/*/x/*", "/a/b/x/c", True), ("/*/x/*", "/a/xx/c", False), ("/a*a", "/a", False), ("/a*a", "/aa", True),
    ):  # fmt: skip
        assert matches_rule(rule, path) is fits, (rule, path)


def headers_for(text: str, path: str, host: str = "site.example") -> list[tuple[str, str]]:
    headers = [("etag", '"1"'), ("cache-control", "public")]
    apply_headers(parse_headers(text)[0], host, path, headers)
    return headers


def test_headers_are_set_added_and_removed() -> None:
    text = """
    # a comment
    /*
      X-A: 1
      Cache-Control: no-store
    /blog/:year/*
      X-A: 2
      X-Where: :year and :splat
      ! ETag
    https://:sub.other.example/*
      X-Sub: :sub
    """
    assert headers_for(text, "/") == [("etag", '"1"'), ("x-a", "1"), ("cache-control", "no-store")]
    assert headers_for(text, "/blog/2026/a/b") == [
        ("x-a", "1"), ("cache-control", "no-store"), ("x-a", "2"), ("x-where", "2026 and a/b"),
    ]  # fmt: skip
    assert ("x-sub", "www") in headers_for(text, "/", "www.other.example")


def test_bad_lines_of_headers_are_ignored_with_a_warning() -> None:
    text = "X: 1\n/a\n  Content-Length: 5\n  bad name: 1\n  Empty:\n  Bad: \x01\n"
    text += "/*/*\n  X: 1\n/:a:b\n  X: 1\n/ok\n  X: 1\n"
    rules, warnings = parse_headers(text)
    assert len(rules) == 1
    assert [warned.line for warned in warnings] == [1, 3, 4, 5, 6, 7, 8, 9, 10]
    many = "".join(f"/{n}\n  X: 1\n" for n in range(101))
    assert len(parse_headers(many)[0]) == 100 and parse_headers(many)[1]
    assert parse_headers("/a\n  X: " + "a" * 2_000)[1]


def test_redirects() -> None:
    text = """
    /old /new
    /301 /new 301
    /q /new?a=1
    /out https://other.example/x
    /blog/:id/* /news/:splat?id=:id 308
    /after-a-wildcard /x
    /r/* /:splat
    """
    redirects, warnings = parse_redirects(text)
    assert not warnings and len(redirects.static) == 4 and len(redirects.dynamic) == 3

    def to(path: str, query: str = "") -> tuple[int, str] | None:
        return redirects.find("site.example", path, query)

    assert to("/old", "b=2") == (302, "/new?b=2")
    assert to("/301") == (301, "/new")
    assert to("/q", "b=2") == (302, "/new?a=1")
    assert to("/out") == (302, "https://other.example/x")
    assert to("/blog/7/a/b") == (308, "/news/a/b?id=7")
    assert to("/after-a-wildcard") == (302, "/x")
    assert to("/nothing") is None
    assert to("/r//evil.example/x") == (302, "/evil.example/x")  # not //evil.example, another site
    assert to("/r/\\evil.example") == (302, "/evil.example")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/a", "found 1 words"),
        ("/a /b 418", "the status is '418'"),
        ("https://x/a /b", "only paths"),
        ("/a b", "must begin with"),
        ("/a //evil.example", "must begin with"),
        ("/a https://x/ 200", "Proxy (200) redirects can only point to relative paths. Got https://x/"),
        ("/* /index.html", "Infinite loop detected in this rule and has been ignored."),
        ("/*/* /b", "more than one `*`"),
        ("/:a/:a /b", "one placeholder twice"),
        ("/a /" + "b" * 2_000, "longer than"),
    ],
)
def test_bad_redirects_are_ignored_with_a_warning(line: str, said: str) -> None:
    redirects, warnings = parse_redirects(f"/ok /fine\n{line}\n")
    assert len(redirects.static) == 1 and not redirects.dynamic
    assert [warned.line for warned in warnings] == [2] and said in warnings[0].text


def test_a_second_rule_for_a_path_is_ignored() -> None:
    redirects, warnings = parse_redirects("/a /b\n/a /c\n")
    assert redirects.find("h", "/a", "") == (302, "/b") and len(warnings) == 1


def test_matching_takes_little_time_whatever_the_pattern_and_the_path() -> None:
    """A regular expression made of such patterns would take minutes."""
    with pytest.raises(BadRule):
        AssetPattern("/" + ":a" * 3)
    text = "".join(f"/*{'a' * 1_900}b{n}\n  X: 1\n" for n in range(50))
    text += "".join(f"/{'/'.join(f':p{i}x' for i in range(60))}/{n}\n  X: 1\n" for n in range(50))
    rules, _ = parse_headers(text)
    assert len(rules) == 100
    began = time.process_time()
    for path in ("/" + "a" * 3_000, "/ax" * 1_000, "/" * 3_000):
        apply_headers(rules, "h", path, [])
    assert time.process_time() - began < 0.5


def test_a_rule_of_very_many_headers_takes_little_time_and_room() -> None:
    """A request may match every rule, so the headers of a file are bounded, and one more costs as much as the first."""
    rules, warnings = parse_headers("/*\n" + "".join(f"h{number}: {number}\n" for number in range(MAX_SETS + 10)))
    assert len(rules[0].sets) == MAX_SETS and len(warnings) == 10 and "1,000 headers" in warnings[0].text
    headers = [("etag", "1")]
    began = time.process_time()
    for _ in range(20):
        apply_headers(rules, "h", "/x", headers)
    assert time.process_time() - began < 0.5
    assert len(headers) == MAX_SETS + 1 and headers[:2] == [("etag", "1"), ("h0", "0")]
    long = "/*\n" + "".join(f"h{number}: {'x' * 1_900}\n" for number in range(100))
    assert sum(len(value) for _, value in parse_headers(long)[0][0].sets) <= 64 << 10


def test_removing_the_only_header_leaves_none() -> None:
    headers = [("etag", "1")]
    apply_headers(parse_headers("/*\n  X: 1\n  ! ETag\n  ! X\n")[0], "h", "/", headers)
    assert headers == [("x", "1")]  # within a rule, what is removed is removed first


def test_a_file_of_nothing_but_mistakes_is_read_to_a_bound_and_says_so() -> None:
    for parse in (parse_headers, parse_redirects):
        warnings = parse("wrong\n" * 9_000)[1]
        assert len(warnings) == MAX_WARNINGS + 1 and "the rest of the file is ignored" in warnings[-1].text
