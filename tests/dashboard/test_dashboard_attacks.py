"""Attacks on the dashboard and on what it can do, by pages of other sites and by other tenants; and how it bears load."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import Tab, browser
from tests.dashboard.pages import Pages
from tests.dashboard.test_dashboard import reply, stop
from tests.running import Atoll

__all__ = ["browser"]

EVIL = "<img src=x onerror=console.error('evil')>"
RTL = "a\u202egpj.exe"
LINES = """export default { fetch() {
  for (let line = 0; line < 50; line++) console.log("line", line, "<img src=x onerror=console.error('evil')>", "a\\u202eb");
  return new Response("ok");
} }"""
CHANGES = {
    "/api/playground/run": {"script": "export default { fetch() { return new Response('x') } }"},
    "/api/tokens": {"name": "mine", "scopes": ["admin"]},
    "/api/tenants": {"name": "mine"},
    "/api/node/engines/1/restart": None,
    "/api/node/engines/1/isolates/1/unload": None,
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("attacks"), engines=1)
    node.start()
    node.deploy("lines", LINES, message=f"{EVIL} {RTL}", env={"WORDS": f"{EVIL} {RTL}"})
    yield node
    assert node.stop() == 0


@pytest.fixture(scope="module")
def one_tab(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    tab = Tab(browser, tmp_path_factory.mktemp("browser"))
    yield tab
    tab.close()


@pytest.fixture
def pages(one_tab: Tab, node: Atoll) -> Pages:
    found = Pages(one_tab, node)
    found.theme("light")
    found.width(1_280)
    one_tab.events.clear()
    return found


@pytest.mark.parametrize("path", CHANGES)
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example", "Content-Type": "application/json"},
        {"Origin": "null", "Content-Type": "application/json"},
        {"Sec-Fetch-Site": "cross-site", "Content-Type": "application/json"},
    ],
    ids=["origin", "opaque", "fetch-site"],
)
def test_csrf_a_page_of_another_site_can_change_nothing(node: Atoll, path: str, headers: dict[str, str]) -> None:
    answer = node.request("POST", node.control_host, path, json.dumps(CHANGES[path]), headers)
    assert answer.status == 403, answer.text


@pytest.mark.parametrize("path", [path for path, body in CHANGES.items() if body])
def test_csrf_a_form_cannot_send_a_body_that_is_accepted(node: Atoll, path: str) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = node.request("POST", node.control_host, path, json.dumps(CHANGES[path]), {"Content-Type": kind})
        assert 400 <= answer.status < 500, (kind, answer.text)


@pytest.mark.parametrize("path", ["/dashboard/", "/api/node/engines", "/api/node/health", "/api/session", "/api/audit"])
def test_dns_rebinding_a_name_that_points_here_gets_nothing(node: Atoll, path: str) -> None:
    answer = node.request("GET", f"evil.example:{node.port}", path)
    assert answer.status in (403, 404) and "csrf" not in answer.text and "pid" not in answer.text


def test_a_token_of_a_tenant_reaches_nothing_of_the_node_or_of_others(one_tab: Tab, tmp_path: Path) -> None:
    node = Atoll(tmp_path, engines=1)
    node.start()
    node.deploy("lines", LINES)
    assert node.control("POST", "/api/tenants", {"name": "other"}).status == 201
    headers = {"Content-Type": "application/json", "X-Atoll-Tenant": "other"}
    body = json.dumps({"name": "spy", "scopes": ["admin"]})
    token = node.request("POST", node.control_host, "/api/tokens", body, headers).json["token"]
    assert node.stop() == 0
    node.settings["control_auth"] = "token"
    node.start()
    try:
        held = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        pid = str(node.engines()[0])
        for method, path in (
            ("GET", "/api/node/engines"), ("GET", "/api/node/engines/live"), ("GET", "/api/node/health"), ("GET", "/api/tenants"),
            ("POST", f"/api/node/engines/{pid}/restart"), ("POST", f"/api/node/engines/{pid}/isolates/1/unload"), ("GET", "/api/backup"),
        ):  # fmt: skip
            assert node.request(method, node.control_host, path, None, held).status == 403, path
        assert node.request("GET", node.control_host, "/api/tenants/default", None, held).status == 404
        one_tab.send("Network.clearBrowserCookies")
        pages = Pages(one_tab, node)
        pages.open("/")
        pages.type(str(token), "#token")
        pages.press("Enter")
        pages.wait("document.body.innerText.includes('No worker yet')")
        for path in ("/workers/lines", "/workers/lines/errors", "/data/kv/carts", "/data/workflows/brew"):
            pages.open(path)
            pages.wait("/there is no (such|namespace)/i.test(document.body.innerText)")
    finally:
        assert node.stop() == 0


def test_marks_that_turn_text_around_are_shown_as_what_they_are_everywhere(pages: Pages, node: Atoll) -> None:
    assert node.get("lines").status == 200
    node.wait_until(lambda: node.logs("lines"))
    for path in ("/workers/lines", "/workers/lines/versions", "/workers/lines/logs"):
        pages.open(path)
        pages.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        pages.wait("document.body.innerText.includes('u202e')")
        assert "\\u202e" in pages.text() and "\u202e" not in pages.text(), path
        assert pages.run("document.querySelectorAll('#app img').length") == 0
        assert pages.complaints() == [], path


@pytest.mark.alone
def test_home_with_a_thousand_workers_is_there_within_a_second(pages: Pages, node: Atoll) -> None:
    worker = node.control("GET", "/api/overview").json["workers"][0]
    some = [worker | {"id": f"w{number}", "name": f"worker-{number}"} for number in range(1_000)]
    reply(pages, "*/api/overview*", {"workers": some})
    pages.open("/", ready="document.querySelectorAll('tbody tr').length === 100")
    assert pages.run("performance.now()") < 1_000
    stop(pages)


@pytest.mark.alone
def test_live_stays_responsive_at_a_thousand_lines_a_second(pages: Pages, node: Atoll) -> None:
    pages.open("/workers/lines/live", ready="document.querySelector('.dot.open')")
    pages.run("""window.longest = 0;
      new PerformanceObserver((list) => { for (const each of list.getEntries()) longest = Math.max(longest, each.duration); })
        .observe({ type: "longtask" }); 1""")
    over, made = threading.Event(), []

    def calls() -> None:
        while not over.wait(0.03):  # 50 lines in each call
            made.append(node.get("lines").status)

    thread = threading.Thread(target=calls)
    thread.start()
    try:
        pages.wait("document.querySelectorAll('.call').length >= 100")
        assert pages.run("longest") < 250
        pages.click("Pause")
        assert pages.run("document.querySelector('[aria-pressed=true]')?.innerText").startswith("Continue")
    finally:
        over.set()
        thread.join()
    assert set(made) == {200}
