"""The pages of operators in Chromium: who makes the node slow, quotas, suspension, tokens, the audit log, health."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import Tab, browser
from tests.dashboard.pages import Pages
from tests.dashboard.test_dashboard import reply, stop
from tests.running import Answer, Atoll

__all__ = ["browser"]

EVIL = "<img src=x onerror=console.error('evil')>"
BUSY = "export default { fetch() { let n = 0; for (let i = 0; i < 2e6; i++) n += i % 7; return new Response(String(n)); } }"
IDLE = "export default { fetch() { return new Response('ok') } }"
PAGES = ("node", "tenants", "tenants/loud", "health", "tokens", "audit", "nowhere", "tenants/nobody")


def asked(node: Atoll, method: str, path: str, body: object, tenant: str) -> Answer:
    headers = {"Content-Type": "application/json", "X-Atoll-Tenant": tenant}
    answer = node.request(method, node.control_host, path, json.dumps(body), headers)
    assert answer.status < 300, answer.text
    return answer


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("manage"), engines=1)
    node.start()
    for name, quotas in (("loud", {"workers": 2, "kv_keys": 10}), ("calm", {"workers": 10})):
        assert node.control("POST", "/api/tenants", {"name": name, "quotas": quotas}).status == 201
        script = BUSY if name == "loud" else IDLE
        asked(node, "POST", "/api/workers", {"name": f"of-{name}", "script": script, "message": EVIL}, name)
    asked(node, "POST", "/api/tokens", {"name": EVIL, "scopes": ["read"]}, "calm")
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


@pytest.fixture
def load(node: Atoll) -> Iterator[None]:
    """Calls of one tenant that take CPU time, and some of another."""
    over = threading.Event()

    def calls() -> None:
        while not over.is_set():
            for name in ("of-loud", "of-loud", "of-loud", "of-calm"):
                node.get(name)

    thread = threading.Thread(target=calls)
    thread.start()
    yield
    over.set()
    thread.join()


def test_two_clicks_show_which_tenant_makes_the_node_slow(pages: Pages, load: None) -> None:
    pages.open("/")
    pages.click("Manage", "nav a")  # first
    first = "document.querySelector('#main tbody tr')"
    pages.wait(f"{first}?.innerText.startsWith('loud') && !/\\t\\u2013/.test({first}.innerText)")
    pages.wait(
        "[...document.querySelectorAll('.cell')].some((each) => /heat[123]/.test(each.className) && each.title.startsWith('of-loud of loud'))"
    )
    pages.click("loud", "tbody a")  # second
    pages.wait("location.pathname === '/dashboard/manage/tenants/loud' && document.body.innerText.includes('of-loud')")
    assert "Workers" in pages.text() and "1 of 2" in pages.text()
    assert pages.complaints() == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_of_operators_has_a_fault_that_axe_finds_or_makes_the_browser_complain(
    pages: Pages, node: Atoll, theme: str
) -> None:
    pages.theme(theme)
    assert node.get("of-loud").status == 200
    for path in PAGES:
        pages.open(f"/manage/{path}")
        pages.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert pages.violations() == [], path
        assert pages.run("document.querySelectorAll('#app img').length") == 0
        found = [said for said in pages.complaints() if "404" not in said or "nobody" not in path]
        assert found == [], path


@pytest.mark.parametrize("width", [320, 768, 1440])
def test_no_page_of_operators_is_wider_than_the_window(pages: Pages, width: int) -> None:
    pages.width(width)
    for path in PAGES:
        pages.open(f"/manage/{path}")
        assert pages.run("document.documentElement.scrollWidth") <= width, path


def test_a_tenant_is_suspended_by_its_name_and_served_again(pages: Pages, node: Atoll) -> None:
    pages.open("/manage/tenants/calm")
    pages.click("Suspend")
    pages.type("calm", "dialog[open] input")
    assert pages.violations() == []
    pages.click("Suspend", "dialog button")
    pages.wait("document.querySelector('#main .badge.bad')?.innerText === 'suspended'")
    assert node.get("of-calm").status == 429
    pages.click("Serve it again")
    pages.wait("!document.querySelector('#main .badge.bad')")
    assert node.get("of-calm").status == 200


def test_a_quota_is_changed_and_the_others_stay(pages: Pages, node: Atoll) -> None:
    pages.open("/manage/tenants/loud")
    pages.click("Change")
    pages.wait("Boolean(document.querySelector('dialog[open] input[name=kv_keys]'))")
    assert pages.violations() == []
    pages.run("document.querySelector('dialog[open] input[name=kv_keys]').select()")
    pages.type("250", "dialog[open] input[name=kv_keys]")
    pages.click("Save", "dialog button")
    pages.wait("document.body.innerText.includes('0 of 250') && !document.querySelector('dialog')")
    quotas = node.control("GET", "/api/tenants/loud").json["quotas"]
    assert quotas["kv_keys"] == 250 and quotas["workers"] == 2


def test_a_token_is_shown_once_and_works_until_it_is_revoked(pages: Pages, node: Atoll) -> None:
    pages.open("/manage/tokens")
    assert EVIL in pages.text()
    pages.click("New token")
    pages.type("ada", "dialog[open] input[type=text]")
    assert pages.violations() == []
    pages.click("Make it", "dialog button")
    token = pages.wait("document.querySelector('dialog pre.token')?.innerText")
    headers = {"Authorization": f"Bearer {token}"}
    assert node.request("GET", node.control_host, "/api/whoami", None, headers).json["name"] == "ada"
    pages.click("I have it", "dialog button")
    pages.wait("[...document.querySelectorAll('tbody th')].some((each) => each.innerText === 'ada')")
    pages.open("/manage/tokens")
    assert token not in pages.text()
    pages.run(
        "[...document.querySelectorAll('tbody tr')].find((row) => row.innerText.startsWith('ada')).querySelector('button').click()"
    )
    pages.type("ada", "dialog[open] input")
    pages.click("Revoke", "dialog button")
    pages.wait("document.querySelector('.told:not(:empty)')?.innerText === 'ada is revoked.'")
    assert node.request("GET", node.control_host, "/api/whoami", None, headers).status == 401


def test_the_map_replaces_an_engine_and_unloads_an_isolate(pages: Pages, node: Atoll) -> None:
    assert node.get("of-loud").status == 200
    pages.open("/manage/node")
    pages.wait("document.querySelector('.cell') !== null")
    pages.run("[...document.querySelectorAll('.cell')].find((each) => each.title.startsWith('of-loud')).click()")
    pages.wait("document.querySelector('dialog')?.innerText.includes('of-loud')")
    assert pages.violations() == []
    pages.click("Unload", "dialog button")
    pages.wait("document.querySelector('dialog .facts')?.innerText.includes('gone')")
    pages.press("Escape")
    [before] = node.engines()
    pages.click("Replace", ".engine button")
    node.wait_until(lambda: node.engines() and before not in node.engines(), 30)
    assert node.get("of-loud").status == 200


def test_the_audit_log_says_who_did_what(pages: Pages, node: Atoll) -> None:
    pages.open("/manage/audit")
    assert "tenant.create" in pages.text() and EVIL in pages.text()
    pages.type("tenant.create", "input[type=search]")
    pages.wait("[...document.querySelectorAll('tbody tr')].every((row) => row.innerText.includes('tenant.create'))")
    reply(pages, "*/api/audit*", {"audit": []})
    pages.open("/manage/audit")
    assert "Nothing was changed yet" in pages.text()
    stop(pages)


def test_ten_thousand_tenants_and_isolates_are_quick(pages: Pages, node: Atoll) -> None:
    one = node.control("GET", "/api/tenants/loud").json
    reply(pages, "*/api/tenants*", {"tenants": [one | {"name": f"tenant-{number}"} for number in range(5_000)]})
    pages.open("/manage/tenants", ready="document.querySelectorAll('tbody tr').length === 50")
    pages.type("tenant-4999", "input[type=search]")
    pages.wait("document.querySelectorAll('tbody tr').length === 1")
    stop(pages)


def test_a_failing_node_is_said_and_the_page_recovers(pages: Pages, node: Atoll) -> None:
    reply(pages, "*/api/node/*", {"error": {"message": f"the disk is full {EVIL}", "code": 19030}}, status=507)
    pages.open("/manage/node", ready="document.querySelector('.notice.bad')")
    assert f"the disk is full {EVIL}" in pages.text()
    stop(pages)
    pages.wait("document.querySelector('.engine') !== null && !document.querySelector('.notice.bad')")


def test_health_offers_a_backup_and_knows_when_the_last_one_was(pages: Pages, node: Atoll, tmp_path: Path) -> None:
    pages.open("/manage/health")
    assert "None was taken yet" in pages.text()
    link = pages.run("[...document.querySelectorAll('a.button')].find((each) => each.innerText === 'Back up now').href")
    answer = node.request("GET", node.control_host, link.split(node.control_host)[1])
    assert answer.status == 200 and len(answer.body) > 10_000
    pages.open("/manage/health")
    assert "The last one was taken" in pages.text()


def test_an_alert_that_fires_says_since_when_and_what_to_do(pages: Pages, node: Atoll) -> None:
    health = node.control("GET", "/api/node/health").json
    alert = {"name": "AtollEngineMissing", "severity": "page", "summary": EVIL, "since": "2026-01-01T00:00:00Z"}
    alert["runbook"] = "docs/guides/runbook.md#atollenginemissing"
    reply(pages, "*/api/node/health*", health | {"alerts": [alert]})
    pages.open("/manage/health")
    assert EVIL in pages.text() and alert["runbook"] in pages.text() and pages.violations() == []
    stop(pages)
    reply(pages, "*/api/node/health*", health | {"alerts": []})
    pages.open("/manage/health")
    assert "No alert fires" in pages.text() and pages.violations() == []
    stop(pages)


def test_a_tenant_sees_its_own_usage_and_nothing_of_others(one_tab: Tab, tmp_path: Path) -> None:
    node = Atoll(tmp_path, engines=1)
    node.start()
    for name in ("mine", "other"):
        assert node.control("POST", "/api/tenants", {"name": name}).status == 201
    token = asked(node, "POST", "/api/tokens", {"name": "me", "scopes": ["admin"]}, "mine").json["token"]
    assert node.stop() == 0
    node.settings["control_auth"] = "token"
    node.start()
    try:
        one_tab.send("Network.clearBrowserCookies")
        pages = Pages(one_tab, node)
        pages.open("/")
        pages.type(str(token), "#token")
        pages.press("Enter")
        pages.wait("document.body.innerText.includes('No worker yet')")
        pages.open("/manage")
        tabs = pages.run("[...document.querySelectorAll('.tabs a')].map((each) => each.innerText)")
        assert tabs == ["Usage", "Tokens", "Audit log"]
        assert pages.run("document.querySelector('#main h2').innerText") == "mine"
        assert not pages.run(
            "[...document.querySelectorAll('#main button')].some((each) => /Suspend|Change/.test(each.innerText))"
        )
        for path in ("/manage/node", "/manage/tenants/other", "/manage/health"):
            pages.open(path)
            assert "your token may not see it" in pages.text()
    finally:
        assert node.stop() == 0
