"""Which worker answers: patterns, precedence, and changes of the table."""

from __future__ import annotations

import time

import pytest

from atoll.router import BadPattern, Router, RouteTaken, host_name, parse_pattern, resolved
from atoll.workers import Version


def version(name: str) -> Version:
    return Version(f"{name}-1", f"worker_{name}", name, "tenant", (), "main.js")


def table(routes: dict[str, list[str]], base: str = "localhost") -> Router:
    router = Router(base)
    for name, patterns in routes.items():
        router.put(name, version(name), patterns)
    return router


def found(router: Router, host: str, target: str = "/") -> str | None:
    version = router.find(host.encode(), target.encode())
    return version.worker_name if version is not None else None


def test_a_worker_answers_on_its_own_name() -> None:
    router = table({"hello": [], "other": []})
    for host in (
        "hello.localhost",
        "hello.localhost:8080",
        "HELLO.LocalHost",
        "hello.localhost.",
        "hello.localhost.:1",
    ):
        assert found(router, host, "/any?thing") == "hello"
    for host in ("nobody.localhost", "a.hello.localhost", "hello", "hello.localhost.evil", "", "hello.localhost:x"):
        assert found(router, host) is None


def test_the_base_domain_can_be_changed() -> None:
    assert found(table({"a": []}, "edge.example.com"), "a.edge.example.com") == "a"


ROUTES = {
    "exact": ["api.example.com/v1/users"],
    "long": ["api.example.com/v1/*"],
    "short": ["api.example.com/*"],
    "sub": ["*.example.com/*"],
    "deep": ["*.b.example.com/*"],
    "both": ["*other.com/*"],
    "path": ["*.example.com/static/*"],
    "domain": ["shop.example.com"],
    "all": ["*/only/*"],
}


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("api.example.com/v1/users", "exact"),
        ("api.example.com/v1/users?x=1", "long"),
        ("api.example.com/v1/", "long"),
        ("api.example.com/v1", "short"),
        ("api.example.com/V1/", "short"),
        ("API.EXAMPLE.COM/v1/", "long"),
        ("api.example.com/static/x", "short"),
        ("x.example.com/", "sub"),
        ("x.y.example.com/", "sub"),
        ("x.example.com/static/x", "path"),
        ("x.b.example.com/", "deep"),
        ("b.example.com/", "sub"),
        ("example.com/", None),
        ("other.com/", "both"),
        ("a.other.com/", "both"),
        ("another.com/", None),
        ("shop.example.com/", "sub"),
        ("anything.at.all/only/x", "all"),
        ("anything.at.all/", None),
        ("exact.localhost/only/x", "exact"),
    ],
)
def test_the_most_specific_route_wins(url: str, name: str | None) -> None:
    host, _, path = url.partition("/")
    assert found(table(ROUTES), host, "/" + path) == name


def test_a_custom_domain_comes_after_the_routes_of_its_host() -> None:
    router = table({"site": ["example.com"], "api": ["example.com/api/*"]})
    assert found(router, "example.com", "/x") == "site"
    assert found(router, "example.com", "/api/x") == "api"
    assert found(router, "www.example.com") is None


def test_a_route_without_a_worker_excludes() -> None:
    router = table({"site": ["example.com/*"]})
    router.put("nobody", None, ["example.com/private/*"])
    assert found(router, "example.com", "/x") == "site"
    assert found(router, "example.com", "/private/x") is None
    assert found(router, "nobody.localhost") is None


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("/public/../admin/x", "admin"),
        ("/./admin/x", "admin"),
        ("/public/%2e%2E/admin/x", "admin"),
        ("/\\admin\\x", "site"),
        ("\\admin\\x", "admin"),
        ("/admin\\x", "admin"),
        ("/../../admin/", "admin"),
        ("/admin/..", "site"),
        ("/x?/../admin/", "site"),
        ("/admin.../x", "site"),
    ],
)
def test_a_route_cannot_be_bypassed_with_dot_segments(target: str, name: str) -> None:
    assert found(table({"site": ["h.com/*"], "admin": ["h.com/admin/*"]}), "h.com", target) == name


def test_dot_segments_are_resolved_as_url_parsers_do() -> None:
    cases = {b"/a/./b": b"/a/b", b"/a/..": b"/", b"/a/b/..": b"/a/", b"/a/.": b"/a/", b"/..": b"/", b"/a?..": b"/a?.."}
    assert {target: resolved(target) for target in cases} == cases


@pytest.mark.parametrize(
    "pattern",
    [
        "", "/", "/path", "*.", "a*.com/", "a.*.com/", "x.com/a*b", "x.com/*/b", "x.com/a?b", "x.com/#", "ftp://x.com/",
        "x.com:80/", "x..com/", "*x.com", "*.x.com", "x y.com/", "x.com/a b", "x.com/ä", "-x.com/", "**/", "[::1/",
    ],
)  # fmt: skip
def test_a_bad_pattern_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(BadPattern, match="the route `"):
        parse_pattern(pattern)


def test_two_texts_of_one_pattern_are_equal() -> None:
    assert parse_pattern("https://WWW.Example.com./Path/*") == parse_pattern("www.example.com/Path/*")
    assert str(parse_pattern("http://*X.com/a*")) == "*x.com/a*"
    assert parse_pattern("x.com/A") != parse_pattern("x.com/a")


def test_two_workers_cannot_have_one_route() -> None:
    router = table({"a": ["x.com/*", "y.com/*"]})
    assert [(str(p), owner) for p, owner in router.conflicts("b", ["X.com/*", "z.com/*"])] == [("x.com/*", "a")]
    with pytest.raises(RouteTaken, match=r"`x\.com/\*` belongs to the worker `a`"):
        router.put("b", version("b"), ["z.com/*", "x.com/*"])
    assert found(router, "b.localhost") is None, "a refused change must leave nothing behind"
    assert found(router, "z.com") is None
    router.put("a", version("a"), ["y.com/*"])
    router.put("b", version("b"), ["x.com/*"])
    assert found(router, "x.com") == "b"


def test_the_host_of_a_name_belongs_to_its_worker() -> None:
    router = table({"victim": [], "wild": ["*.localhost/*", "*/*"]})
    assert found(router, "victim.localhost") == "victim"
    assert found(router, "nobody.localhost") == "wild"
    with pytest.raises(RouteTaken):
        router.put("thief", version("thief"), ["victim.localhost/*"])
    router.put("early", version("early"), ["later.localhost/*"])
    with pytest.raises(RouteTaken):
        router.put("later", version("later"))
    router.put("victim", version("victim"), ["victim.localhost/*"])
    assert found(router, "victim.localhost") == "victim"


def test_control_hosts_belong_to_no_worker() -> None:
    router = Router(control_hosts=["Control.example.com"])
    router.put("wild", version("wild"), ["*/*"])
    for host in (
        "localhost",
        "LOCALHOST:8080",
        "127.0.0.1:1",
        "[::1]:8080",
        "[::1]",
        "control.example.com.",
        "localhost.",
    ):
        assert router.is_control(host.encode()), host
        assert found(router, host) is None
    for host in ("wild.localhost", "x", "", "127.0.0.2", "control.example.com.evil"):
        assert not router.is_control(host.encode())
    with pytest.raises(RouteTaken, match="control API"):
        router.put("a", version("a"), ["control.example.com/*"])


def test_a_change_is_seen_by_the_next_request() -> None:
    router = table({"a": ["x.com/*"]})
    first = router.find(b"x.com", b"/")
    new = version("a")
    router.put("a", new, ["x.com/*"])
    assert first is not None and router.find(b"x.com", b"/") is new
    router.drop("a")
    assert router.find(b"x.com", b"/") is None
    assert router.find(b"a.localhost", b"/") is None
    router.drop("a")


def test_computed_routes_change_with_their_worker() -> None:
    """Routes are computed in advance, so they must be updated with every change."""
    router = Router("localhost", ["admin.localhost"])
    for name in ("a", "admin"):
        router.put(name, version(name))
    other, old = version("b"), version("a")
    router.put("b", other, ["*.localhost/*"])
    router.put("a", old, ["a.localhost/x"])
    for host in (b"a.localhost", b"A.localhost", b"a.localhost:80", b"a.localhost."):
        assert router.find(host, b"/y") is old and router.find(host, b"/x") is old, host
    for host in (b"admin.localhost", b"admin.localhost:80"):
        assert router.find(host, b"/") is None, host
    router.put("a", None, ["a.localhost/x"])  # the worker answers nowhere, and /x belongs to no worker
    for host in (b"a.localhost", b"a.localhost:80"):
        assert router.find(host, b"/x") is None and router.find(host, b"/y") is other, host
    router.drop("a")
    for host in (b"a.localhost", b"a.localhost:80"):
        assert router.find(host, b"/x") is other, host


def test_random_hosts_do_not_grow_memory() -> None:
    router = table({"a": []})
    for number in range(10_000):
        router.find(b"%d.example.com" % number, b"/")
    assert len(router.remembered) <= 4096


@pytest.mark.parametrize(
    ("host", "name"),
    [
        (b"A.b", b"a.b"), (b"a.b.:80", b"a.b"), (b"[::1]:80", b"[::1]"), (b"[1::2::3]", None),
        (b"1.2.3", None), (b"1.2.3.256", None), (b"a.0x1", None), (b"a:", b"a"), (b"a:65536", None), (b"a/b", None),
        (b".a", None), (b"a..b", None), (b"a b", None), (b"\xff", None), (b"", None), (b"a" * 300, None),
        (b"a_b-c", b"a_b-c"), (b"127.0.0.1", b"127.0.0.1"),
    ],
)  # fmt: skip
def test_the_host_is_parsed_from_the_header(host: bytes, name: bytes | None) -> None:
    assert host_name(host) == name


def test_a_lookup_takes_about_a_microsecond() -> None:
    router = table(ROUTES)
    router.find(b"api.example.com", b"/v1/users")
    best = min(timed(router) for _ in range(20))
    assert best < 10e-6, "about 1 us on a quiet machine"


def timed(router: Router) -> float:
    start = time.perf_counter()
    for _ in range(100):
        router.find(b"exact.localhost", b"/")
    return (time.perf_counter() - start) / 100
