"""The dashboard of a real node in Chromium: its pages, the flows through them, and what they do when things go wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.control.endpoints.dashboard import read_built
from tests.browser import Tab, browser
from tests.dashboard.pages import Pages
from tests.running import Atoll

__all__ = ["browser"]

EVIL = "<img src=x onerror=console.error('evil')>"
SCRIPT = f"""export default {{
  async fetch(request) {{
    console.log({json.dumps(EVIL)});
    console.log("a\u202eb");
    if (new URL(request.url).pathname === "/boom") throw new TypeError({json.dumps(EVIL)} + " is undefined");
    return new Response("hello");
  }}, scheduled() {{}}
}}"""
PAGES = ("/", "/routes", "/workers/evil", "/workers/evil/versions", "/workers/evil/live", "/workers/evil/logs",
         "/workers/evil/settings", "/workers/none", "/nowhere")  # fmt: skip


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("dashboard"), engines=1)
    node.start()
    fields = {
        "env": {"EVIL": EVIL}, "crons": ["0 0 1 1 *"], "routes": ["evil.example/<img>*"],
        "bindings": [{"type": "kv", "name": "KV", "namespace": "evil-ns"}],
    }  # fmt: skip
    node.deploy("evil", SCRIPT, **fields, message=EVIL, tag=EVIL[:90])
    node.deploy("evil", SCRIPT + "//", **fields, message="second " + "x" * 900)
    node.control("PUT", "/api/workers/evil/secrets/API_KEY", {"value": "hunter2"})
    yield node
    assert node.stop() == 0


@pytest.fixture(scope="module")
def one_tab(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    tab = Tab(browser, tmp_path_factory.mktemp("tab"))
    yield tab
    tab.close()


@pytest.fixture
def pages(one_tab: Tab, node: Atoll) -> Pages:
    one_tab.send("Network.clearBrowserCookies")
    one_tab.events.clear()
    pages = Pages(one_tab, node)
    pages.theme("light")
    pages.width(1280)
    return pages


def test_the_files_stay_within_their_budget() -> None:
    built = read_built()
    plain = {name: len(data) for name, data in built.files.items() if name.endswith((".js", ".css"))}
    assert sum(plain[name] for name in (built.script, built.style, *built.preload)) <= 120 << 10
    assert sum(plain.values()) <= 300 << 10
    assert not [name for name in plain if name + ".gz" not in built.files or name + ".br" not in built.files]


def test_files_are_served_compressed_and_for_ever_on_control_hosts_only(node: Atoll) -> None:
    path = f"/dashboard/assets/{read_built().script}"
    answer = node.request("GET", node.control_host, path, headers={"Accept-Encoding": "gzip, br"})
    assert answer.status == 200 and answer.headers["content-encoding"] == "br"
    assert "immutable" in answer.headers["cache-control"] and answer.headers["x-content-type-options"] == "nosniff"
    assert node.request("GET", node.control_host, path).headers["content-encoding"] is None
    page = node.request("GET", node.control_host, "/dashboard/").text
    assert all(f'rel="modulepreload" href="/dashboard/assets/{name}"' in page for name in read_built().preload)
    assert node.request("GET", node.control_host, "/dashboard/assets/web.js").status == 404
    assert b"<!doctype html>" in node.request("GET", node.control_host, "/dashboard/assets/..%2fweb.js").body
    assert node.get("evil", "/dashboard/").text == "hello"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_a_fault_that_axe_finds_or_makes_the_browser_complain(
    pages: Pages, node: Atoll, theme: str
) -> None:
    for path in ("/", "/boom"):
        node.get("evil", path, {"User-Agent": EVIL})
    Atoll.wait_until(lambda: len(node.logs("evil")) >= 2)
    pages.theme(theme)
    for path in PAGES:
        pages.open(path)
        pages.wait("[...document.querySelectorAll('.plot')].every((box) => box.querySelector('canvas'))")
        pages.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert pages.violations() == [], path
        assert pages.run("document.querySelectorAll('#app img').length") == 0
        allowed = "404" if path == "/workers/none" else "\0"
        assert [each for each in pages.complaints() if allowed not in each] == [], path


@pytest.mark.parametrize("width", [320, 768, 1440])
def test_no_page_is_wider_than_the_window(pages: Pages, node: Atoll, width: int) -> None:
    pages.width(width)
    for path in PAGES:
        pages.open(path)
        assert pages.run("document.documentElement.scrollWidth") <= width, path


def test_from_a_failing_row_to_the_line_of_the_exception_in_three_clicks(pages: Pages, node: Atoll) -> None:
    node.get("evil", "/boom")
    Atoll.wait_until(lambda: any(each["outcome"] == "exception" for each in node.logs("evil")))
    pages.open("/")
    pages.click("evil")
    pages.click("Logs")
    pages.wait("Boolean(document.querySelector('details.call.is-bad'))")
    pages.run("document.querySelector('details.call.is-bad summary').click()")
    text = pages.wait("document.querySelector('details[open] .thrown')?.innerText")
    assert EVIL in text and "worker.js:5" in text


def test_live_shows_a_call_as_it_happens_and_waits_while_it_is_paused(pages: Pages, node: Atoll) -> None:
    pages.open("/workers/evil/live")
    pages.wait("document.querySelector('.dot.open') !== null")
    node.get("evil", "/first")
    pages.wait("document.querySelector('.call')?.innerText.includes('/first')")
    pages.click("Pause")
    node.get("evil", "/second")
    pages.wait("document.body.innerText.includes('Continue (1 new)')")
    assert "/second" not in pages.text()
    pages.click("Continue")
    pages.wait("document.body.innerText.includes('/second')")


def test_traffic_moves_from_ten_percent_to_all_and_back(pages: Pages, node: Atoll) -> None:
    node.deploy("split", SCRIPT)
    node.deploy("split", SCRIPT + "//", message="next")

    def traffic() -> dict[int, float]:
        return {
            each["number"]: each["percentage"] for each in node.control("GET", "/api/workers/split").json["traffic"]
        }

    pages.open("/workers/split/versions")
    pages.wait("document.querySelectorAll('.timeline li').length === 2")
    pages.run(
        "[...document.querySelectorAll('.timeline button')].filter((b) => b.innerText === 'Give it traffic')[0].click()"
    )
    pages.wait("document.querySelector('dialog[open] output')?.innerText === '10 %'")
    pages.click("Deploy", "dialog button")
    pages.wait("document.querySelector('.split')?.ariaLabel.includes('version 1: 10 %')")
    assert traffic() == {1: 10.0, 2: 90.0}
    pages.click("Give it traffic")
    pages.click("All to 2", "dialog button")
    pages.wait("document.querySelector('.split')?.ariaLabel === 'version 2: 100 %'")
    pages.click("Roll back")
    pages.click("Roll back", "dialog button")
    pages.wait("document.querySelector('.split')?.ariaLabel === 'version 1: 100 %'")
    assert traffic() == {1: 100.0}
    pages.click("Changes since 1")
    pages.wait("document.querySelector('.diff')?.innerText.includes('worker.js')")


def test_a_secret_is_set_and_never_shown_and_deleted_by_its_name(pages: Pages, node: Atoll) -> None:
    node.deploy("keeper", SCRIPT)
    pages.open("/workers/keeper/settings")
    pages.type("TOKEN", "input[placeholder=API_KEY]")
    pages.type("hunter3", "input[autocomplete=new-password]")
    pages.click("Set secret")
    pages.wait("document.querySelector('.told:not(:empty)')?.innerText.startsWith('TOKEN is set')")
    assert "hunter3" not in pages.run("document.documentElement.outerHTML")
    pages.click("Delete", "td button")
    pages.type("TOKE", "dialog[open] input")
    assert pages.run("document.querySelector('dialog button.bad').disabled")
    pages.type("N", "dialog[open] input")
    pages.click("Delete", "dialog button.bad")
    pages.wait("!document.querySelector('#main').innerText.includes('Set again')")
    assert node.control("GET", "/api/workers/keeper/secrets").json["secrets"] == []


def test_the_routes_page_says_who_answers_a_url(pages: Pages, node: Atoll) -> None:
    pages.open("/routes")
    for url, words in (
        ("http://evil.localhost/a", "evil, version"),
        ("http://nobody.example/", "No worker of this tenant"),
    ):
        pages.run("document.querySelector('input[type=url]').select()")
        pages.type(url, "input[type=url]")
        pages.click("Ask")
        pages.wait(f"document.querySelector('.tester .notice')?.innerText.includes({json.dumps(words)})")


def test_keys_open_the_search_which_finds_a_worker(pages: Pages, node: Atoll) -> None:
    pages.open("/routes")
    pages.press("?")
    pages.wait("document.querySelector('dialog[open]')?.innerText.includes('search workers')")
    pages.press("Escape")
    pages.wait("!document.querySelector('dialog')")
    pages.press("/")
    pages.type("evi", "dialog[open] input")
    pages.wait("document.querySelector('[role=option]')?.innerText.includes('evil')")
    assert pages.violations() == []
    pages.press("Enter")
    pages.wait("location.pathname === '/dashboard/workers/evil' && !document.querySelector('dialog')")
    assert pages.complaints() == []


def test_ten_thousand_rows_are_quick(pages: Pages, node: Atoll) -> None:
    worker = node.control("GET", "/api/overview").json["workers"][0]
    some = [worker | {"id": f"w{number}", "name": f"worker-{number}"} for number in range(10_000)]
    reply(pages, "*/api/overview*", {"workers": some})
    began = time.monotonic()
    pages.open("/", ready="document.querySelectorAll('tbody tr').length === 100")
    assert time.monotonic() - began < 5
    pages.type("worker-9999", "input[type=search]")
    pages.wait("document.querySelectorAll('tbody tr').length === 1")
    stop(pages)


def test_no_rows_say_the_one_command_to_run(pages: Pages, node: Atoll) -> None:
    reply(pages, "*/api/overview*", {"workers": []})
    pages.open("/")
    assert "atoll deploy my-worker" in pages.text() and pages.violations() == []
    stop(pages)


def test_a_node_that_fails_or_is_slow_is_said_and_the_page_recovers(pages: Pages, node: Atoll) -> None:
    reply(pages, "*/api/overview*", {"error": {"message": "the disk is full", "code": 19030}}, status=507)
    pages.open("/", ready="document.querySelector('.notice.bad')")
    assert "the disk is full" in pages.text() and "tries again by itself" in pages.text()
    assert pages.violations() == []
    stop(pages)
    pages.wait("document.querySelector('tbody')?.innerText.includes('evil')")
    pages.tab.events.clear()
    pages.run(
        "window.slow = fetch; window.fetch = async (...all) => (await new Promise((go) => { window.go = go; }), slow(...all)); 1"
    )
    pages.click("Routes", "nav a")
    pages.wait("document.querySelector('.loading')?.innerText.includes('slow to answer')")
    pages.run("window.fetch = slow; go()")
    pages.wait("document.querySelector('tbody')?.innerText.includes('evil.localhost')")


@pytest.mark.alone
def test_a_page_switch_takes_less_than_100_ms(pages: Pages, node: Atoll) -> None:
    pages.open("/")
    pages.wait("document.querySelector('tbody') !== null")
    script = """new Promise((done) => {
      const began = performance.now();
      new MutationObserver(() => { if (document.querySelector('.crumb')) done(performance.now() - began); })
        .observe(document.body, { childList: true, subtree: true });
      [...document.querySelectorAll('tbody a')].find((each) => each.innerText === 'evil').click();
    })"""
    assert pages.run(script) < 100


# A node that wants a token


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("closed"), engines=1, control_auth="token")
    node.start()
    yield node
    assert node.stop() == 0


def token_of(node: Atoll) -> str:
    return (Path(node.folder) / "data/admin-token").read_text().strip()


def asked(node: Atoll, method: str, path: str, body: object = None) -> dict[str, object]:
    headers = {"Authorization": f"Bearer {token_of(node)}", "Content-Type": "application/json"}
    answer = node.request(method, node.control_host, path, None if body is None else json.dumps(body), headers)
    assert answer.status < 300, answer.text
    return answer.json if answer.body else {}


def test_a_token_logs_in_survives_a_reload_and_a_logout_ends_it(one_tab: Tab, closed: Atoll) -> None:
    one_tab.send("Network.clearBrowserCookies")
    pages = Pages(one_tab, closed)
    pages.open("/")
    assert pages.violations() == []
    pages.type("atoll_wrong_token", "#token")
    pages.press("Enter")
    pages.wait("document.querySelector('.notice.bad')?.innerText.includes('not valid')")
    pages.run("document.querySelector('#token').select()")
    pages.type(token_of(closed), "#token")
    pages.press("Enter")
    pages.wait("document.body.innerText.includes('No worker yet')")
    pages.open("/")
    pages.wait("document.body.innerText.includes('No worker yet')")
    assert pages.run("document.cookie") == ""
    pages.click("admin")
    pages.click("Log out")
    pages.wait("Boolean(document.querySelector('#token'))")


def test_the_address_of_the_command_logs_in_once_and_forgets_its_code(one_tab: Tab, closed: Atoll) -> None:
    one_tab.send("Network.clearBrowserCookies")
    pages = Pages(one_tab, closed)
    path = str(asked(closed, "POST", "/api/session/codes")["path"]).removeprefix("/dashboard")
    pages.open(path, ready="document.body.innerText.includes('No worker yet')")
    assert pages.run("location.hash") == "" and "code" not in pages.run("location.href")
    one_tab.send("Network.clearBrowserCookies")
    one_tab.send("Page.navigate", url="about:blank")
    pages.open(path, ready="document.querySelector('.notice.bad')?.innerText.includes('not valid')")


def test_a_session_that_ends_in_a_form_keeps_the_text(one_tab: Tab, closed: Atoll) -> None:
    one_tab.send("Network.clearBrowserCookies")
    pages = Pages(one_tab, closed)
    asked(closed, "POST", "/api/workers", {"name": "form", "script": SCRIPT})
    made = asked(closed, "POST", "/api/tokens", {"name": "short", "scopes": ["deploy"], "all_tenants": True})
    pages.open("/")
    pages.type(str(made["token"]), "#token")
    pages.press("Enter")
    pages.wait("document.body.innerText.includes('form')")
    pages.open("/workers/form/settings")
    pages.type("MY_SECRET", "input[placeholder=API_KEY]")
    pages.type("hunter4", "input[autocomplete=new-password]")
    asked(closed, "DELETE", f"/api/tokens/{made['id']}")
    pages.click("Set secret")
    pages.wait("document.querySelector('.over')?.innerText.includes('session has ended')")
    pages.type(token_of(closed), ".over #token")
    pages.click("Log in", ".over button")
    pages.wait("!document.querySelector('.over')")
    assert pages.run("document.querySelector('input[placeholder=API_KEY]').value") == "MY_SECRET"
    pages.click("Set secret")
    pages.wait("document.querySelector('.told:not(:empty)')?.innerText.startsWith('MY_SECRET is set')")


def reply(pages: Pages, pattern: str, answer: object, status: int = 200) -> None:
    """Answer requests of the page itself from now on, as a node would in another state."""
    script = """((pattern, status, text) => {
      const real = window.fetch;
      window.real = real;
      window.fetch = async (url, ...rest) =>
        String(url).includes(pattern) ? new Response(text, { status, headers: { "Content-Type": "application/json" } }) : real(url, ...rest);
    })"""
    source = f"{script}({json.dumps(pattern.strip('*'))}, {status}, {json.dumps(json.dumps(answer))})"
    found = pages.tab.send("Page.addScriptToEvaluateOnNewDocument", source=source)
    pages.replied = found["identifier"]  # type: ignore[attr-defined]


def stop(pages: Pages) -> None:
    pages.tab.send("Page.removeScriptToEvaluateOnNewDocument", identifier=pages.replied)  # type: ignore[attr-defined]
    pages.run("window.fetch = window.real; 1")
