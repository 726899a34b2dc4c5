"""`atoll dev` has the dashboard: calls with timings, console, the project's data, the sizes of its code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.browser import Tab, browser
from tests.cli.dev_session import Dev
from tests.dashboard.pages import Pages

__all__ = ["browser"]

WORKER = """import { greet } from "./greet.js";
export default { async fetch(request, env) {
  await env.CUPS.put("last", "sencha");
  console.log("asked for", new URL(request.url).pathname);
  return new Response(greet("tea"));
} }"""


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Dev]:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "atoll.toml").write_text(
        'name = "tea"\nmain = "worker.js"\n\n[[kv_namespaces]]\nbinding = "CUPS"\nid = "cups"\n'
    )
    (folder / "worker.js").write_text(WORKER)
    (folder / "greet.js").write_text("export const greet = (name) => `hello ${name}`;\n")
    session = Dev(folder)
    yield session
    session.stop()


def test_the_greeting_leads_to_a_dashboard_with_calls_data_and_sizes(dev: Dev, browser: str, tmp_path: Path) -> None:
    [ready] = [event for event in dev.seen if event["event"] == "ready"]
    control = ready["control"].removeprefix("http://")
    assert ready["dashboard"] == f"http://{control}/dashboard/"
    tab = Tab(browser, tmp_path / "browser")
    try:
        pages = Pages(tab, SimpleNamespace(control_host=control))  # type: ignore[arg-type]
        pages.open("/workers/tea/live", ready="document.querySelector('.dot.open')")
        assert dev.get("green") == (200, "hello tea")
        pages.wait("document.querySelector('.call')?.innerText.includes('/green')")
        pages.run("document.querySelector('.call').open = true")
        pages.wait("document.querySelector('.call .meters') !== null")
        assert "asked for /green" in pages.text()
        pages.open("/workers/tea/settings")
        assert "Code" in pages.text()
        pages.wait("[...document.querySelectorAll('tbody th')].some((each) => each.innerText.endsWith('.js'))")
        pages.open("/data/kv")
        pages.wait("document.querySelector('tbody a') !== null")
        pages.run("document.querySelector('tbody a').click()")
        pages.wait("document.querySelector('#main')?.innerText.includes('last')")
        assert pages.complaints() == []
    finally:
        tab.close()
