"""In Chromium: from a failing worker to the line of its source, and the pages of workflows."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.browser import Tab, browser
from tests.dashboard.pages import Pages
from tests.running import Atoll

__all__ = ["browser"]

EVIL = "<img src=x onerror=console.error('evil')>"
FAILS = f"export default {{ fetch() {{ throw new TypeError(`no tea {EVIL}`); }} }}"
MAP = {"version": 3, "sources": ["../src/tea.ts"], "names": [], "mappings": "AAAA"}  # all of line 1
FLOWS = """import { WorkflowEntrypoint } from "cloudflare:workers";
export class Brew extends WorkflowEntrypoint {
  async run(event, step) {
    await step.do("boil <img src=x onerror=console.error('evil')>", async () => ({ degrees: 98 }));
    if (event.payload.fails) await step.do("pour", { retries: { limit: 0, delay: 1 } }, async () => { throw new Error(event.payload.fails); });
    const { payload } = await step.waitForEvent("a cup", { type: "cup", timeout: "1 hour" });
    return { poured: payload };
  }
}
export default { fetch() { return new Response("ok") } }"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("errors"), engines=1)
    node.start()
    node.deploy("fails", modules={"worker.js": FAILS}, main="worker.js", source_maps={"worker.js": json.dumps(MAP)})
    node.deploy("calm", "export default { fetch() { return new Response('ok') } }")
    node.deploy(
        "flows",
        FLOWS,
        bindings=[{"type": "workflow", "name": "BREW", "workflow": "brew"}],
        workflows=[{"name": "brew", "class_name": "Brew"}],
    )
    for _ in range(3):
        assert node.get("fails").status == 500
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


def start(node: Atoll, id: str, params: object) -> None:
    answer = node.control("POST", "/api/workflows/brew/instances", {"id": id, "params": params})
    assert answer.status == 201, answer.text


def status(node: Atoll, id: str) -> str:
    return str(node.control("GET", f"/api/workflows/brew/instances/{id}").json["status"])


def test_three_clicks_lead_from_a_red_row_to_the_line_of_the_source(pages: Pages, node: Atoll) -> None:
    node.wait_until(lambda: node.control("GET", "/api/errors").json["errors"])
    pages.open("/")
    pages.wait("document.querySelector('tbody tr')?.innerText.includes('failing')")
    pages.run("document.querySelector('tbody tr a').click()")  # first
    pages.click("Errors", ".tabs a")  # second
    pages.wait("document.querySelector('.group')?.innerText.includes('no tea')")
    assert "3 \u00d7" in pages.text() and EVIL in pages.text()
    pages.run("document.querySelector('.group summary').click()")  # third
    pages.wait("document.querySelector('.group .thrown')?.innerText.includes('src/tea.ts:1')")
    assert pages.violations() == [] and pages.run("document.querySelectorAll('#app img').length") == 0
    assert pages.complaints() == []


def test_a_worker_without_errors_says_so(pages: Pages, node: Atoll) -> None:
    pages.open("/workers/calm/errors")
    assert "No error is known" in pages.text() and pages.violations() == []


def test_a_workflow_is_started_gets_an_event_and_shows_its_steps_as_bars(pages: Pages, node: Atoll) -> None:
    pages.open("/data/workflows/brew")
    pages.click("Start an instance")
    pages.type("first", "dialog[open] input")
    assert pages.violations() == []
    pages.click("Start", "dialog button")
    pages.wait(
        "document.querySelectorAll('.gantt > li').length === 2 && document.querySelector('.lane i.open') !== null"
    )
    assert EVIL in pages.text()
    pages.click("Send an event")
    pages.type("cup", "dialog[open] input")
    pages.run("document.querySelector('dialog textarea').select()")
    pages.type("12345678901234567890", "dialog[open] textarea")
    pages.click("Send", "dialog button")
    pages.wait("document.querySelector('.head .badge.good')?.innerText === 'complete'")
    assert "12345678901234567890" in pages.text() or "12345678901234567000" in pages.text()
    assert pages.complaints() == []


def test_an_instance_is_paused_resumed_ended_and_run_again(pages: Pages, node: Atoll) -> None:
    start(node, "steered", {})
    node.wait_until(lambda: status(node, "steered") == "waiting")
    pages.open("/data/workflows/brew/steered")
    for button, wanted in (
        ("Pause", "paused"),
        ("Resume", "waiting"),
        ("Terminate", "terminated"),
        ("Restart", "waiting"),
    ):
        pages.click(button, ".acts button")
        pages.wait(f"document.querySelector('.head .badge')?.innerText === '{wanted}'")
    assert status(node, "steered") == "waiting"
    pages.click("Delete", ".acts button")
    pages.type("steered", "dialog[open] input")
    pages.click("Delete", "dialog button")
    pages.wait("location.pathname === '/dashboard/data/workflows/brew'")
    assert node.control("GET", "/api/workflows/brew/instances/steered").status == 404


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_of_workflows_or_errors_has_a_fault_that_axe_finds(pages: Pages, node: Atoll, theme: str) -> None:
    pages.theme(theme)
    start(node, f"bad-{theme}", {"fails": EVIL})
    node.wait_until(lambda: status(node, f"bad-{theme}") == "errored")
    bad = f"/data/workflows/brew/bad-{theme}"
    for path in (
        "/data/workflows",
        "/data/workflows/brew",
        bad,
        "/data/workflows/nobodys",
        "/data/workflows/brew/nobodys",
        "/workers/fails/errors",
    ):
        for width in (320, 1_280):
            pages.width(width)
            pages.open(path)
            pages.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            pages.wait("!document.querySelector('.loading')")
            assert pages.violations() == [], path
            assert pages.run("document.documentElement.scrollWidth") <= width, path
            assert pages.run("document.querySelectorAll('#app img').length") == 0
            assert [said for said in pages.complaints() if "404" not in said or "nobodys" not in path] == [], path
