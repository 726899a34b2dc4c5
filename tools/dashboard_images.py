"""Makes the pictures of the dashboard: `python -m tools.dashboard_images [--out FOLDER] [--every-width]`.

Starts a node of its own with example workers, an hour of example traffic in its charts and some real calls, and takes
pictures with Chromium. With `--every-width` it takes every page at 320, 768 and 1440 px in both themes, to look at.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from atoll.observe import series
from atoll.observe.meter import CPU_BOUNDS, WALL_BOUNDS
from atoll.observe.series_points import StepCounts
from tests.browser import BROWSERS, Tab
from tests.dashboard.shop import LOADS, WORKERS, deploy, deploy_for_others, fill_stores
from tests.debian import require
from tests.running import Atoll

ROOT = Path(__file__).parent.parent
PAGES = {
    "home": "/",
    "overview": "/workers/shop",
    "versions": "/workers/shop/versions",
    "logs": "/workers/shop/logs",
    "live": "/workers/shop/live",
    "settings": "/workers/shop/settings",
    "routes": "/routes",
    "kv": "/data/kv/carts",
    "value": "/data/kv/carts?key=cart%2F1002",
    "d1": "/data/d1/shop?table=teas",
    "sql": "/data/d1/shop?tab=sql",
    "time-travel": "/data/d1/shop?tab=time",
    "objects": "/data/objects",
    "r2": "/data/r2/photos",
    "file": "/data/r2/photos?key=teas%2Fsencha.txt",
    "backlogs": "/data/queues",
    "backlog": "/data/queues/mails",
    "cached": "/data/cache",
    "flows": "/data/workflows",
    "errors": "/workers/shop/errors",
    "playground": "/playground",
    "node": "/manage/node",
    "tenants": "/manage/tenants",
    "tenant": "/manage/tenants/acme",
    "health": "/manage/health",
    "tokens": "/manage/tokens",
    "audit": "/manage/audit",
}
SHOWN = {
    "home": "light",
    "overview": "dark",
    "versions": "light",
    "d1": "light",
    "node": "light",
    "playground": "dark",
}  # the pictures of the documents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/images")
    parser.add_argument("--every-width", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, example_node(Path(folder)) as node, chromium(Path(folder)) as tab:
        for page, path in PAGES.items():
            if options.every_width:
                for theme in ("light", "dark"):
                    for width in (320, 768, 1440):
                        take(tab, node, path, theme, width, options.out / f"{page}-{theme}-{width}.png", whole=True)
            elif page in SHOWN:
                take(tab, node, path, SHOWN[page], 1280, options.out / f"dashboard-{page}.png", whole=page == "node")


@contextmanager
def chromium(folder: Path) -> Iterator[Tab]:
    tab = Tab(require("chromium", *BROWSERS), folder / "browser")
    try:
        yield tab
    finally:
        tab.close()


@contextmanager
def example_node(folder: Path) -> Iterator[Atoll]:
    node = Atoll(folder, control_auth="auto")
    node.start()
    try:
        ids = deploy(node)
        deploy_for_others(node)
        fill_stores(node)
        node.stop()
        fill(folder / "data" / series.SERIES_FILE, ids)
        node.start()
        for path in ("/", "/tea", "/basket/checkout", "/slow", "/tea?sort=price", "/basket/checkout", "/about"):
            node.get("shop", path, {"User-Agent": "Mozilla/5.0"})
        yield node
    finally:
        node.stop()


def fill(file: Path, workers: dict[str, dict[str, Any]]) -> None:
    """An hour of traffic: waves, a burst of errors in the shop, a slow search."""
    chance = random.Random(7)
    now, elapsed = int(time.time()) // 60 * 60, time.time() % 60  # the last minute is not over
    rows = []
    for name, rate in WORKERS.items():
        for minute in range(60):
            wave = 1 + 0.35 * math.sin(minute / 9 + rate) + chance.uniform(-0.12, 0.12)
            calls = int(rate * 60 * wave * (min(1, (elapsed + 5) / 60) if minute == 59 else 1))
            bad = int(calls * (0.06 if name == "shop" and 34 <= minute <= 41 else 0.004 if name == "mailer" else 0))
            slow = 9 if name == "search" else 5
            point = StepCounts(
                {2: calls - bad, **({10: bad} if bad else {})},
                spread(calls, len(WALL_BOUNDS) + 1, slow, chance),
                spread(calls, len(CPU_BOUNDS) + 1, 4, chance),
                calls * 2_400,
                calls // 3,
                0,
            )
            subject = series.of_worker(workers[name]["id"])
            rows.append((60, subject, now - 3_540 + minute * 60, workers[name]["version"]["id"], point))
    connection = apsw.Connection(str(file))
    with connection:
        series.insert(connection, rows)
    connection.close()


def spread(calls: int, places: int, middle: int, chance: random.Random) -> list[int]:
    weights = [math.exp(-((place - middle + chance.uniform(-0.4, 0.4)) ** 2) / 1.6) for place in range(places - 2)] + [
        0,
        0,
    ]
    return [round(calls * weight / sum(weights)) for weight in weights]


def take(tab: Tab, node: Atoll, path: str, theme: str, width: int, out: Path, *, whole: bool = False) -> None:
    size = {"width": width, "height": 860, "deviceScaleFactor": 1, "mobile": width < 400}
    tab.send("Emulation.setDeviceMetricsOverride", **size)
    tab.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    tab.send("Page.navigate", url=f"http://{node.control_host}/dashboard{path}")
    tab.wait_until(
        "document.readyState === 'complete' && document.querySelector('h1') && !document.querySelector('.loading')"
    )
    charts = "[...document.querySelectorAll('.plot')].every((box) => box.querySelector('canvas'))"
    tab.wait_until(charts)
    tab.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    if path == PAGES["d1"]:
        change_a_cell(tab)
    if path == PAGES["playground"]:
        run_a_draft(tab)
    if path == PAGES["node"]:
        make_calls(tab, node)
    if whole:
        tall = tab.run("document.documentElement.scrollHeight")
        tab.send("Emulation.setDeviceMetricsOverride", **{**size, "height": min(int(tall), 4_000)})
        tab.wait_until(charts)
    tab.screenshot(out)
    print(out)


def change_a_cell(tab: Tab) -> None:
    tab.wait_until("Boolean(document.querySelector('.grid button.cell'))")
    tab.run("document.querySelectorAll('.grid tbody tr')[2].querySelectorAll('button.cell')[2].click()")
    tab.wait_until("Boolean(document.querySelector('dialog textarea'))")
    tab.run("document.querySelector('dialog textarea').select()")
    tab.send("Input.insertText", text="9.5")
    tab.run("document.querySelector('dialog button.primary').click()")
    tab.wait_until("Boolean(document.querySelector('.is-changed')) && !document.querySelector('dialog')")
    tab.run("document.activeElement.blur()")


def run_a_draft(tab: Tab) -> None:
    tab.run("[...document.querySelectorAll('button')].find((each) => each.innerText === 'Run').click()")
    tab.wait_until("Boolean(document.querySelector('.ran .meters'))")
    tab.run("document.activeElement.blur()")


def make_calls(tab: Tab, node: Atoll) -> None:
    """Until the map has every tenant, with rates."""
    bars = "[...document.querySelectorAll('#main tbody tr')].filter((row) => / %/.test(row.innerText)).length"
    while not tab.run(f"{bars} >= 3 && document.querySelectorAll('.cell').length > 8"):
        for name in (*WORKERS, *LOADS):
            node.get(name)


if __name__ == "__main__":
    main()
