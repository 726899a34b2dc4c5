"""html_handling and not_found_handling: every cell of Cloudflare's table, by file set and path."""

from __future__ import annotations

import pytest

from atoll.assets.rules import AssetRules
from atoll.assets.table import AssetTable, file_of

F, I, B = "/foo.html", "/foo/index.html", "/foo"  # noqa: E741 (the names of the table)
FORCE, DROP, AUTO, NONE = "force-trailing-slash", "drop-trailing-slash", "auto-trailing-slash", "none"


def table(*paths: str, html: str = AUTO, not_found: str = "none", **rules: object) -> AssetTable:
    has_worker = bool(rules.pop("has_worker", False))
    files = {path: file_of(path, f"{index:064x}", 10, "") for index, path in enumerate(paths, 1)}
    found = AssetRules("0" * 64, html, not_found, **rules)  # type: ignore[arg-type]
    return AssetTable(found, files, has_worker=has_worker)


def answer(found: AssetTable, path: str, method: str = "GET", query: str = "", navigates: bool = False) -> str:
    """`/file`, `-> /redirect`, or a status."""
    given = found.answer(method, "site.example", path, query, navigates)
    if given is None:
        return "worker"
    if given.location:
        return f"-> {given.location}"
    if given.file is None:
        return str(given.status)
    name = next(path for path, file in found.files.items() if file is given.file)
    return name if given.status == 200 else f"{given.status} {name}"


# mode, files, path, what answers
CELLS = [
    (AUTO, (B, F), "/foo", B), (AUTO, (F,), "/foo", F), (AUTO, (I,), "/foo", "-> /foo/"),
    (AUTO, (I,), "/foo/", I), (AUTO, (F,), "/foo/", "-> /foo"), (AUTO, (F, I), "/foo/", I),
    (AUTO, (F,), "/foo.html", "-> /foo"), (AUTO, (I,), "/foo.html", "-> /foo/"), (AUTO, (F, B), "/foo.html", F),
    (AUTO, (I,), "/foo/index", "-> /foo/"), (AUTO, (F,), "/foo/index", "-> /foo"),
    (AUTO, ("/foo/index", I), "/foo/index", "/foo/index"),
    (AUTO, (I,), "/foo/index.html", "-> /foo/"), (AUTO, (F,), "/foo/index.html", "-> /foo"),
    (FORCE, (B, F), "/foo", B), (FORCE, (F,), "/foo", "-> /foo/"), (FORCE, (I,), "/foo", "-> /foo/"),
    (FORCE, (I, F), "/foo/", I), (FORCE, (F,), "/foo/", F),
    (FORCE, (F,), "/foo.html", "-> /foo/"), (FORCE, (F, I), "/foo.html", F), (FORCE, (I,), "/foo.html", "-> /foo/"),
    (FORCE, (I,), "/foo/index", "-> /foo/"), (FORCE, (F,), "/foo/index", "-> /foo/"),
    (FORCE, (I,), "/foo/index.html", "-> /foo/"), (FORCE, (F,), "/foo/index.html", "-> /foo/"),
    (DROP, (B, F), "/foo", B), (DROP, (F,), "/foo", F), (DROP, (I,), "/foo", I),
    (DROP, (F,), "/foo/", "-> /foo"), (DROP, (I,), "/foo/", "-> /foo"),
    (DROP, (F,), "/foo.html", "-> /foo"), (DROP, (I,), "/foo.html", "-> /foo"),
    (DROP, (F,), "/foo/index", "-> /foo"), (DROP, (I,), "/foo/index", "-> /foo"),
    (DROP, (I,), "/foo/index.html", "-> /foo"), (DROP, (F, I), "/foo/index.html", I),
    (DROP, (F,), "/foo/index.html", "-> /foo"),
    (NONE, (B,), "/foo", B), (NONE, (F,), "/foo", "404"), (NONE, (I,), "/foo/", "404"), (NONE, (F,), "/foo.html", F),
    (NONE, (I,), "/foo/index.html", I),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "files", "path", "expected"), CELLS)
def test_every_cell_of_the_table(mode: str, files: tuple[str, ...], path: str, expected: str) -> None:
    assert answer(table(*files, html=mode), path) == expected


@pytest.mark.parametrize("mode", [AUTO, FORCE, DROP])
def test_the_home_page_is_at_the_root(mode: str) -> None:
    home = table("/index.html", html=mode)
    assert [answer(home, path) for path in ("/", "/index", "/index.html")] == ["/index.html", "-> /", "-> /"]


@pytest.mark.parametrize("mode", [AUTO, FORCE, DROP, NONE])
def test_no_redirect_leads_to_another_file_or_to_itself(mode: str) -> None:
    """Follow redirects from every spelling, in every set of files: they end, and at a file of that page."""
    spellings = (B, "/foo/", F, "/foo/index", I)
    for number in range(1, 32):
        files = [path for bit, path in enumerate((B, F, I, "/foo/index", "/foo.html.html")) if number >> bit & 1]
        found = table(*files, html=mode)
        for path in spellings:
            seen = [path]
            while (told := answer(found, seen[-1])).startswith("-> "):
                seen.append(told[3:])
                assert len(seen) < 3, (files, seen)
            assert len(seen) == 1 or told in (F, I, "/foo.html.html"), (files, seen, told)


def test_not_found_handling() -> None:
    pages = table("/index.html", "/404.html", "/blog/404.html", not_found="404-page")
    assert answer(pages, "/x/y") == "404 /404.html"
    assert answer(pages, "/blog/a/b") == "404 /blog/404.html"
    app = table("/index.html", not_found="single-page-application")
    assert answer(app, "/x/y") == "/index.html"
    assert answer(app, "/x/y", "POST") == "405"
    assert answer(table("/a.txt", not_found="single-page-application"), "/x") == "404"
    assert answer(table("/a.txt"), "/x", "POST") == "404"


def test_paths_are_decoded_and_have_one_spelling() -> None:
    found = table("/a b.txt", "/caf\u00e9/index.html", "/100%.txt", "/a%20b.txt")
    assert answer(found, "/a%20b.txt") == "/a b.txt"
    assert answer(found, "/a%2520b.txt") == "/a%20b.txt"
    assert answer(found, "/caf%C3%A9/") == "/caf\u00e9/index.html"
    assert answer(found, "/caf%c3%a9/", query="q=1") == "-> /caf%C3%A9/?q=1"
    assert answer(found, "/caf%C3%A9", query="q=1") == "-> /caf%C3%A9/?q=1"
    assert answer(found, "//a%20b.txt") == "-> /a%20b.txt"
    assert answer(found, "/%61%20b.txt") == "-> /a%20b.txt"
    assert answer(found, "/100%.txt") == "-> /100%25.txt"
    assert answer(found, "/%ff") == "404"


def test_a_redirect_never_leads_to_another_host() -> None:
    app = table("/index.html", "/evil.example/index.html", not_found="single-page-application")
    assert answer(app, "//evil.example") == "-> /evil.example/"
    assert answer(app, "//evil.example/%2e%2e") == "-> /evil.example/.."
    assert answer(app, "///evil.example/x") == "-> /evil.example/x"


def test_with_a_worker_files_come_first_and_the_worker_gets_the_rest() -> None:
    found = table("/index.html", "/404.html", not_found="404-page", has_worker=True)
    assert answer(found, "/") == "/index.html"
    assert answer(found, "/", "POST") == "405"
    assert answer(found, "/x") == "worker"
    assert answer(found, "/x", "POST") == "worker"
    assert answer(found, "/x", navigates=True) == "404 /404.html"
    assert answer(found.alone(), "/x") == "404 /404.html"
    first = table("/index.html", has_worker=True, run_worker_first=True)
    assert answer(first, "/") == "worker"


def test_rules_choose_the_worker_before_the_files() -> None:
    found = table(
        "/index.html", "/api/docs/a.txt", "/api/x.txt", not_found="single-page-application", has_worker=True,
        run_worker_first=("/api/*", "!/api/docs/*", "/*.php"),
    )  # fmt: skip
    assert answer(found, "/api/x.txt") == "worker"
    assert answer(found, "/api/docs/a.txt") == "/api/docs/a.txt"
    assert answer(found, "/api/docs/none") == "/index.html"
    assert answer(found, "/a/b.php") == "worker"
    assert answer(found, "/page") == "/index.html"  # with rules, not_found_handling comes before the worker
