"""The single-page app of the examples in Chromium: it loads, moves between pages, and can be reloaded on any of them."""

from __future__ import annotations

from pathlib import Path

from tests.browser import Tab, browser, tab
from tests.cli.test_projects import run
from tests.running import Atoll

__all__ = ["browser", "tab"]

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_page_loads_moves_and_reloads(atoll: Atoll, tab: Tab) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    run(EXAMPLES / "spa-api", "deploy", "--name", "browser-app", **node)
    home = f"http://{atoll.host('browser-app')}"
    tab.send("Page.navigate", url=f"{home}/")
    tab.wait_for("Welcome")
    tab.send("Runtime.evaluate", expression="document.querySelectorAll('a')[1].click()")
    tab.wait_for("On the server it is 2")
    tab.send("Page.reload")  # /clock has no file: the app answers
    tab.wait_for("On the server it is 2")
    tab.send("Page.navigate", url=f"{home}/deep/link")
    tab.wait_for("There is no page /deep/link")
