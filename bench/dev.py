"""The inner loop: `atoll dev` compared with `wrangler dev` from npm, on the same project, in turns.

The project is TypeScript with hono from npm, so both bundle. The benchmark measures the time from the command to the
first correct answer, in a folder where each has run before, and from a save to the first answer of the new code. A
client sends a request every few milliseconds. The delay before a save varies, so that saves do not align with the
polling of a watcher by chance. It also measures the very first start in a folder, when neither has any state of the
project.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.harness import HERE, START_SECONDS, BenchError, fetch, free_port
from bench.report import Options, Row, main

ROOT = HERE.parent
WRANGLER = ROOT / "build/peers/node_modules/wrangler/bin/wrangler.js"
STARTS = 7
NEW_STARTS = 3
SAVES = 15
STATE = (".atoll", ".wrangler")  # state that each leaves in the folder
CONFIG = '{ "name": "bench", "main": "src/index.ts", "compatibility_date": "2025-09-01" }'
SOURCE = """import { Hono } from "hono";

const app = new Hono();
const word: string = "WORD";
app.get("/", (c) => c.text(word));
export default app;
"""


class Dev:
    """A dev server in its own project folder, from start to stop."""

    name = "atoll"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.rand = random.Random(0)
        (folder / "src").mkdir(exist_ok=True)
        (folder / "wrangler.jsonc").write_text(CONFIG)
        if not (folder / "node_modules").exists():
            (folder / "node_modules").symlink_to(ROOT / "node_modules")
        self.write("first")

    def command(self) -> list[str]:
        return [str(Path(sys.executable).parent / "atoll"), "dev", "--port", str(self.port), "--host", "127.0.0.1"]

    def write(self, word: str) -> None:
        (self.folder / "src/index.ts").write_text(SOURCE.replace("WORD", word))

    def __enter__(self) -> Self:
        self.began = time.perf_counter()
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def wait_for(self, word: str, began: float) -> float:
        """Milliseconds from `began` until the server answers with `word`."""
        while True:
            try:
                if fetch(self.port, f"localhost:{self.port}", timeout=10)[1] == word.encode():
                    return (time.perf_counter() - began) * 1000
            except OSError:
                pass
            if self.process.poll() is not None or time.perf_counter() - began > START_SECONDS:
                raise BenchError(f"{self.name} dev does not answer: {(self.folder / 'log').read_text()[-500:]}")
            time.sleep(0.002)

    def save(self, word: str) -> float:
        time.sleep(0.4 + self.rand.random() * 0.3)
        began = time.perf_counter()
        self.write(word)
        return self.wait_for(word, began)


class Wrangler(Dev):
    name = "workerd"  # the runtime that wrangler runs

    def command(self) -> list[str]:
        from atoll.project.fetch import node_folder

        node = str(node_folder() / "bin/node")
        return [node, str(WRANGLER), "dev", "--port", str(self.port), "--ip", "127.0.0.1", "--inspector-port", "0"]


def environment() -> dict[str, str]:
    """Lets Python cache its bytecode, as in any installation: without the cache each start would compile again."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "WRANGLER_SEND_METRICS": "false", "CI": "1"}


def measure_new(folders: dict[type[Dev], Path]) -> dict[str, float]:
    """Median time of the first start in a folder, in ms, by name."""
    starts: dict[str, list[float]] = {kind.name: [] for kind in folders}
    for _ in range(NEW_STARTS):
        for kind, folder in folders.items():
            for state in STATE:
                shutil.rmtree(folder / state, ignore_errors=True)
            with kind(folder) as server:
                starts[kind.name].append(server.wait_for("first", server.began))
    return medians(starts)


def measure(folders: dict[type[Dev], Path]) -> tuple[dict[str, float], dict[str, float]]:
    """Median times of starts and saves in ms, by name. The servers take turns, so that a busy moment affects both."""
    starts: dict[str, list[float]] = {kind.name: [] for kind in folders}
    saves: dict[str, list[float]] = {kind.name: [] for kind in folders}
    for i in range(STARTS + 1):
        for kind, folder in folders.items():
            server = kind(folder)
            with server:
                took = server.wait_for("first", server.began)
                if i > 0:  # the very first start fills caches
                    starts[kind.name].append(took)
                if i == STARTS:
                    saves[kind.name] = [server.save(f"save {n}") for n in range(SAVES)]
    return medians(starts), medians(saves)


def medians(times: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in times.items()}


def run(options: Options) -> list[Row]:
    if not WRANGLER.is_file():
        raise BenchError("wrangler is not installed: run `make bench-peers`")
    with tempfile.TemporaryDirectory(prefix="atoll-bench-") as room:
        folders = {kind: Path(room) / kind.name for kind in (Dev, Wrangler)}
        for folder in folders.values():
            folder.mkdir()
        starts, saves = measure(folders)
        new = measure_new(folders)
    bar = "1/3 of wrangler"
    return [
        Row("wrangler dev: start to answer", "ms", starts, bar, met=starts["workerd"] >= 3 * starts["atoll"]),
        Row("wrangler dev: first start in a folder", "ms", new),
        Row("wrangler dev: save to answer", "ms", saves, bar, met=saves["workerd"] >= 3 * saves["atoll"]),
    ]


if __name__ == "__main__":
    main(run)
