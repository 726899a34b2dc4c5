"""The error page of `atoll dev` in a real browser: it shows the code, and disappears when the error is corrected."""

from __future__ import annotations

from pathlib import Path

from tests.browser import Tab, browser, tab
from tests.cli.dev_session import Dev

__all__ = ["browser", "tab"]

CONFIG = 'name = "page"\nmain = "index.ts"\ncompatibility_date = "2026-01-01"\n'
GOOD = """
const headers = { "content-type": "text/html" };
export default { fetch: () => new Response("<h1>All good</h1>", { headers }) };
"""
BROKEN = """export default {
  fetch( {
    return new Response();
  },
};
"""
THROWS = """export default {
  fetch(request: Request): Response {
    throw new Error(`no ${request.method}`);
  },
};
"""
HANGS = "export default { fetch() { for (;;); } };"


def test_the_error_page_disappears_when_the_error_is_corrected(tab: Tab, tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "atoll.toml").write_text(CONFIG)
    (folder / "index.ts").write_text(BROKEN)
    dev = Dev(folder)
    try:
        tab.send("Page.navigate", url=dev.url)
        page = tab.wait_for("The project does not build")
        assert "index.ts:" in page and "return new Response();" in page
        tab.screenshot(tmp_path / "build-error.png")
        dev.save("index.ts", THROWS)  # another error brings another page without a manual reload
        page = tab.wait_for("The worker threw an exception")
        assert "Error: no GET" in page and "> 3 |     throw new Error(`no ${request.method}`);" in page
        tab.screenshot(tmp_path / "run-error.png")
        dev.save("index.ts", HANGS)  # an error without a stack
        page = tab.wait_for("The worker used too much CPU time")
        dev.save("index.ts", GOOD)
        assert tab.wait_for("All good") == "All good"
    finally:
        dev.stop()
