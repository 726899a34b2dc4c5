"""The playground: a draft runs once and leaves nothing; in Chromium, from an empty page to an address that answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from tests.browser import Tab, browser
from tests.dashboard.pages import Pages
from tests.running import Answer, Atoll

__all__ = ["browser"]

EVIL = "<img src=x onerror=console.error('evil')>"
HELLO = "export default { fetch(request) { console.log('asked', request.url); return new Response('hello ' + request.method); } };"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("playground"), engines=1)
    node.start()
    yield node
    assert node.stop() == 0


def run(node: Atoll, script: str, **fields: object) -> Answer:
    return node.control("POST", "/api/playground/run", {"script": script, **fields})


def test_a_draft_answers_with_its_console_and_what_it_used_of_its_limits(node: Atoll) -> None:
    request = {"method": "POST", "url": "http://a.example/tea?x=ü", "headers": [["X-Cup", "7"]], "body": "näive"}
    script = """export default { async fetch(request, env) {
      console.warn(request.headers.get("x-cup"), request.url, env.CITY);
      return new Response(await request.text(), { status: 201, headers: { "x-made": "yes" } });
    } }"""
    ran = run(node, script, request=request, env={"CITY": "Porto"}, limits={"cpu_ms": 40}).json
    assert (ran["outcome"], ran["status"], ran["body"]) == ("ok", 201, "näive")
    assert ["x-made", "yes"] in ran["headers"] and ran["limits"]["cpu_ms"] == 40
    [line] = ran["record"]["logs"]
    assert line["level"] == "warn" and line["message"] == "7 http://a.example/tea?x=%C3%BC Porto"
    assert 0 < ran["record"]["cpu_ms"] < 40


@pytest.mark.parametrize(
    ("body", "outcome", "line"),
    [
        ("\n\n throw new TypeError('no');", "exception", 4),
        ("while (true);", "exceededCpu", 0),
        ("await new Promise(() => {});", "exception", 0),
    ],
)
def test_a_draft_that_fails_says_how_and_where(node: Atoll, body: str, outcome: str, line: int) -> None:
    ran = run(node, f"export default {{ async fetch() {{ {body} }} }}\n").json
    assert (ran["outcome"], ran["status"]) == (outcome, 0)
    assert ran["record"]["exception"].get("line", 0) == (line and line - 1)


def test_code_that_does_not_compile_is_refused_with_its_place(node: Atoll) -> None:
    modules = {"worker.js": "export default {\n  fetch() { return new Response(; }\n}"}
    answer = node.control("POST", "/api/playground/run", {"modules": modules, "main": "worker.js"})
    assert answer.status == 422 and answer.json["error"]["line"] == 2


def test_nothing_of_a_draft_is_kept(node: Atoll) -> None:
    for _ in range(3):
        assert run(node, HELLO).json["body"] == "hello GET"
    assert node.control("GET", "/api/workers").json["workers"] == []
    assert node.control("GET", "/api/errors").json["errors"] == []
    node.wait_until(lambda: node.pool()["cached"] == 0)
    assert 'worker="playground"' not in node.control("GET", "/metrics").text
    assert [line["action"] for line in node.control("GET", "/api/audit").json["audit"]] == []


@pytest.mark.parametrize(
    "request_",
    [
        {"headers": [["x", "1\r\ny: 2"]]},
        {"headers": [["x y", "1"]]},
        {"headers": [["Host", "other.example"]]},
        {"headers": [["Transfer-Encoding", "chunked"]]},
        {"url": "http://a.example/\r\nx: 1"},
        {"url": "http://user@a.example/"},
        {"url": "file:///etc/passwd"},
        {"url": "/tea"},
        {"method": "GET /x HTTP/1.1\r\n"},
        {"method": ""},
        {"body": 7},
    ],
)
def test_a_request_cannot_smuggle_lines_into_the_head_of_a_call(node: Atoll, request_: dict[str, object]) -> None:
    answer = run(node, HELLO, request=request_)
    text = node.control("POST", "/api/playground/run", {"script": HELLO}).json["record"]["headers"]
    assert text == {"host": "playground.localhost"}
    if answer.status == 200:  # the URL was cleaned before it was used
        assert answer.json["record"]["headers"] == {"host": "a.example"} and "\n" not in answer.json["record"]["url"]
    else:
        assert answer.status == 400 and answer.json["error"]["message"]


@pytest.mark.parametrize("field", ["bindings", "secrets", "routes", "crons", "assets", "isolation", "name"])
def test_a_draft_has_no_bindings_routes_or_triggers(node: Atoll, field: str) -> None:
    answer = run(node, HELLO, **{field: []})
    assert answer.status == 400 and field in answer.json["error"]["message"]


def test_a_long_answer_is_cut_and_a_binary_one_is_base64(node: Atoll) -> None:
    long = run(node, "export default { fetch() { return new Response('ü'.repeat(700_000)) } }").json
    assert long["is_cut"] and not long["is_binary"] and len(long["body"].encode()) == 512 << 10
    binary = run(node, "export default { fetch() { return new Response(new Uint8Array([255, 0, 1])) } }").json
    assert binary["is_binary"] and binary["body"] == "/wAB"


def test_more_than_four_drafts_at_once_are_refused(node: Atoll) -> None:
    slow = "export default { async fetch() { await scheduler.wait(2_000); return new Response('late') } }"
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(run(node, slow).status)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 200, 200, 200, 403, 403]


# In Chromium


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


def write(pages: Pages, script: str) -> None:
    pages.wait("Boolean(document.querySelector('.editor textarea'))")
    pages.run("document.querySelector('.editor textarea').focus(); document.querySelector('.editor textarea').select()")
    pages.tab.send("Input.insertText", text=script)


def test_from_the_playground_to_a_live_url_in_less_than_a_minute(pages: Pages, node: Atoll) -> None:
    began = time.monotonic()
    pages.open("/")
    pages.click("Playground", "nav a")
    write(pages, HELLO)
    pages.click("Run")
    pages.wait("document.querySelector('.ran pre.value')?.innerText === 'hello GET'")
    assert "asked http://playground.localhost/" in pages.text() and pages.violations() == []
    pages.click("Save as worker")
    pages.type("first", "dialog[open] input")
    pages.click("Save", "dialog button")
    assert "first.localhost" in pages.wait("document.querySelector('dialog .live a')?.href")
    assert node.get("first").text == "hello GET"
    assert time.monotonic() - began < 60
    assert pages.complaints() == []


def test_a_preview_is_shared_and_the_traffic_stays(pages: Pages, node: Atoll) -> None:
    node.deploy("shared", "export default { fetch() { return new Response('old') } }")
    pages.open("/playground")
    write(pages, HELLO)
    pages.click("Share a preview")
    pages.type("shared", "dialog[open] input")
    pages.click("Share", "dialog button")
    url = pages.wait("document.querySelector('dialog .live a')?.href")
    host = url.split("/")[2]
    assert node.request("GET", host).text == "hello GET" and node.get("shared").text == "old"


def test_html_of_a_draft_is_text_and_runs_nowhere(pages: Pages) -> None:
    pages.open("/playground")
    page = f"export default {{ fetch() {{ console.log(`{EVIL}`); return new Response(`{EVIL}<script>console.error(1)</script>`, {{ headers: {{ 'content-type': 'text/html', 'x-evil': `{EVIL}` }} }}) }} }}"
    write(pages, page)
    pages.click("Run")
    assert pages.wait("document.querySelector('.ran pre.value')?.innerText").startswith(EVIL)
    assert pages.run("document.querySelectorAll('#app img, #app iframe, #app script').length") == 0
    assert pages.complaints() == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_exception_leads_to_its_line_and_axe_finds_no_fault(pages: Pages, theme: str) -> None:
    pages.theme(theme)
    pages.open("/playground")
    write(pages, "export default {\n  fetch() {\n    throw new TypeError('tea is cold');\n  }\n}")
    pages.press("Tab")
    pages.click("Run")
    pages.wait("document.querySelector('.ran')?.innerText.includes('tea is cold')")
    assert pages.violations() == []
    pages.click("Go to line 3")
    area = "document.querySelector('.editor textarea')"
    pages.wait(f"document.activeElement === {area}")
    assert pages.run(f"{area}.value.slice({area}.selectionStart, {area}.selectionEnd).trim()").startswith("throw new")
    assert pages.complaints() == []


def test_the_editor_colours_without_markup_and_keeps_the_draft_over_a_reload(pages: Pages) -> None:
    pages.open("/playground")
    write(pages, "const tea = 'sencha'; // 80 degrees")
    pages.wait("CSS.highlights.get('js-text')?.size === 1 && CSS.highlights.get('js-note')?.size === 1")
    assert pages.run("document.querySelector('.editor pre').childElementCount") == 0
    pages.open("/playground")
    assert pages.run("document.querySelector('.editor textarea').value") == "const tea = 'sencha'; // 80 degrees"


@pytest.mark.parametrize("width", [320, 768, 1440])
def test_the_playground_is_not_wider_than_the_window(pages: Pages, width: int) -> None:
    pages.width(width)
    pages.open("/playground")
    assert pages.run("document.documentElement.scrollWidth") <= width
