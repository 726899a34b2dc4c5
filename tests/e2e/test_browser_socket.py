"""Chromium opens the page of the chat example. Its WebSocket shows messages of others and sends what is typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect

from atoll.project.read import read_project
from tests.browser import Tab, browser, tab
from tests.running import Atoll

__all__ = ["browser", "tab"]

CHAT = Path(__file__).parents[2] / "examples/chat"
SAY = """(() => { document.querySelector("input").value = "hello from Chromium"; document.querySelector("button").click(); })()"""


async def test_a_page_talks_to_its_worker(atoll: Atoll, tab: Tab, tmp_path: Path) -> None:
    project = read_project(CHAT)
    assert project.main is not None
    atoll.deploy(script=project.main.read_text(), **(project.settings() | {"name": "browser-chat"}))
    tab.send("Page.navigate", url=f"http://{atoll.host('browser-chat')}/")
    tab.wait_for("welcome, 1 here")
    options: dict[str, Any] = {"host": "127.0.0.1", "port": atoll.port, "proxy": None}
    async with connect(f"ws://{atoll.host('browser-chat')}/", **options) as other:
        assert await other.recv() == "welcome, 2 here"
        await other.send("hello from Python")
        tab.wait_for("hello from Python")
        assert await other.recv() == "hello from Python"
        tab.send("Runtime.evaluate", expression=SAY)
        assert await other.recv() == "hello from Chromium"
        tab.wait_for("hello from Chromium")
        tab.screenshot(tmp_path / "chat.png")
    atoll.control("DELETE", "/api/workers/browser-chat")  # its sockets stay open until they are closed
    tab.send("Runtime.evaluate", expression="socket.send('still here')")
    tab.wait_for("still here")
