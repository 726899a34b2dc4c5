"""What all pages of data share: no fault that axe finds, no complaint of the browser, no page wider than the window; empty, slow and
failing states; and a token that may only read."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.browser import Tab
from tests.dashboard.data_node import EVIL, browser, data_node, data_tab, fill, pages
from tests.dashboard.pages import Pages
from tests.dashboard.test_dashboard import reply, stop
from tests.running import Atoll

__all__ = ["browser", "data_node", "data_tab", "pages"]

KINDS = ["kv", "d1", "objects", "r2", "queues", "cache"]


def every_page(node: Atoll) -> list[str]:
    evil = quote(EVIL, safe="")
    one = f"/data/objects/box/Box/{node.object_id}"  # type: ignore[attr-defined]
    return [
        *(f"/data/{kind}" for kind in KINDS), "/data/kv/hostile", "/data/kv/empty", f"/data/kv/hostile?key={evil}", "/data/kv/hostile?key=picture",
        "/data/d1/hostile", "/data/d1/empty", f"/data/d1/hostile?table={evil}", "/data/d1/hostile?table=many", "/data/d1/hostile?table=bare",
        "/data/d1/hostile?table=cheap", "/data/d1/hostile?table=keyed", "/data/d1/hostile?tab=sql", "/data/d1/hostile?tab=time",
        "/data/objects/box/Box", one, f"{one}?tab=sql", f"{one}?tab=sockets", f"{one}?table=visits",
        "/data/r2/hostile-files", "/data/r2/empty-files", "/data/r2/hostile-files?prefix=pages/", "/data/r2/hostile-files?key=picture.png",
        f"/data/r2/hostile-files?key={evil}", "/data/queues/hostile", "/data/queues/empty", "/data/cache/default", "/data/nowhere",
    ]  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_of_data_has_a_fault_that_axe_finds_or_makes_the_browser_complain(
    pages: Pages, data_node: Atoll, theme: str
) -> None:
    pages.theme(theme)
    for path in every_page(data_node):
        pages.open(path)
        pages.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert pages.violations() == [], path
        assert pages.run("document.querySelectorAll('#app img:not(.picture img)').length") == 0
        assert pages.complaints() == [], path


@pytest.mark.parametrize("width", [320, 768, 1440])
def test_no_page_of_data_is_wider_than_the_window(pages: Pages, data_node: Atoll, width: int) -> None:
    pages.width(width)
    for path in every_page(data_node):
        pages.open(path)
        assert pages.run("document.documentElement.scrollWidth") <= width, path


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data_says_the_one_command_to_run_when_there_is_none(
    pages: Pages, data_node: Atoll, kind: str
) -> None:
    empty = {name: [] for name in ("namespaces", "databases", "buckets", "queues", "caches")}
    reply(pages, "*/api/*", empty)
    pages.open(f"/data/{kind}", ready="document.querySelector('.empty pre')")
    assert pages.run("document.querySelector('.empty pre').innerText").startswith("atoll ")
    assert pages.violations() == []
    stop(pages)


@pytest.mark.parametrize("kind", KINDS)
def test_a_failing_node_is_said_and_the_page_recovers(pages: Pages, data_node: Atoll, kind: str) -> None:
    reply(pages, "*/api/*", {"error": {"message": f"the disk is full {EVIL}", "code": 19030}}, status=507)
    pages.open(f"/data/{kind}", ready="document.querySelector('.notice.bad')")
    assert f"the disk is full {EVIL}" in pages.text() and "tries again by itself" in pages.text()
    stop(pages)
    pages.wait("document.querySelector('tbody tr') !== null && !document.querySelector('.notice.bad')")


def test_a_slow_node_is_said(pages: Pages, data_node: Atoll) -> None:
    pages.open("/data/kv")
    pages.run(
        "window.slow = fetch; window.fetch = async (...all) => (await new Promise((go) => { window.go = go; }), slow(...all)); 1"
    )
    pages.click("D1", ".tabs a")
    pages.wait("document.querySelector('.loading')?.innerText.includes('slow to answer')")
    pages.run("window.fetch = slow; go()")
    pages.wait("document.querySelector('tbody')?.innerText.includes('hostile')")


@pytest.mark.parametrize("kind", ["kv", "d1", "r2", "queues"])
def test_ten_thousand_resources_are_quick_to_look_through(pages: Pages, data_node: Atoll, kind: str) -> None:
    field = {"kv": "namespaces", "d1": "databases", "r2": "buckets", "queues": "queues"}[kind]
    [one, *_] = data_node.control("GET", f"/api/{kind}").json[field]
    reply(pages, f"*/api/{kind}*", {field: [one | {"name": f"thing-{number}"} for number in range(10_000)]})
    pages.open(f"/data/{kind}", ready="document.querySelectorAll('tbody tr').length === 100")
    pages.type("thing-9999", "input[type=search]")
    pages.wait("document.querySelectorAll('tbody tr').length === 1")
    stop(pages)


def test_the_bindings_of_a_worker_lead_to_its_data(pages: Pages, data_node: Atoll) -> None:
    pages.open("/workers/box")
    links = pages.wait("[...document.querySelectorAll('.joined a')].map((each) => each.getAttribute('href'))")
    for path in ("kv/hostile", "d1/hostile", "r2/hostile-files", "queues/hostile", "objects/box/Box"):
        assert f"/dashboard/data/{path}" in links


def test_keys_and_the_search_lead_to_the_data(pages: Pages, data_node: Atoll) -> None:
    pages.open("/routes")
    pages.press("g")
    pages.press("d")
    pages.wait("location.pathname === '/dashboard/data/kv'")
    pages.press("/")
    pages.type("queues", "dialog[open] input")
    pages.wait("document.querySelector('[role=option]')?.innerText.includes('Queues')")
    pages.press("Enter")
    pages.wait("location.pathname === '/dashboard/data/queues' && !document.querySelector('dialog')")


def test_another_tenants_names_in_the_address_are_not_there(pages: Pages, data_node: Atoll) -> None:
    for path in ("/data/d1/nobodys", "/data/r2/nobodys", "/data/queues/nobodys", f"/data/objects/box/Box/{'0' * 64}"):
        pages.open(path)
        assert "There is no such" in pages.text(), path
    pages.complaints()


def test_a_token_that_may_only_read_sees_rows_and_no_buttons_that_change(data_tab: Tab, tmp_path: Path) -> None:
    node = Atoll(tmp_path, engines=1)
    node.start()
    node.object_id = fill(node)  # type: ignore[attr-defined]
    token = node.control("POST", "/api/tokens", {"name": "looks", "scopes": ["read"]}).json["token"]
    assert node.stop() == 0
    node.settings["control_auth"] = "token"
    node.start()
    try:
        data_tab.send("Network.clearBrowserCookies")
        pages = Pages(data_tab, node)
        pages.open("/")
        pages.type(str(token), "#token")
        pages.press("Enter")
        pages.wait("document.body.innerText.includes('box')")
        for path in every_page(node):
            pages.open(path)
            assert pages.run("document.querySelector('.notice.bad') === null"), (path, pages.text())
            words = (
                "Delete",
                "Create",
                "New",
                "Edit",
                "Purge",
                "Pause",
                "Restore",
                "Add",
                "Send",
                "Set",
                "Move",
                "Run now",
            )
            found = pages.run("[...document.querySelectorAll('#main button')].map((each) => each.innerText)")
            assert [each for each in found if each.startswith(words)] == [], path
        pages.open("/data/d1/hostile?table=many")
        assert "tea 1" in pages.wait("document.querySelector('tbody')?.innerText")
    finally:
        assert node.stop() == 0
