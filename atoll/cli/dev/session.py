"""One `atoll dev` session: a node in this process, its workers, and requests from keys and tools."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from atoll.cli.dev import CONTROL_HOST
from atoll.cli.dev.first import Begun
from atoll.cli.dev.node import DevNode, Watching
from atoll.cli.dev.terminal import Keys, Terminal
from atoll.cli.dev.worker import DevWorker
from atoll.cli.interrupt import signals_to_stop
from atoll.cli.options import WantedProject, shown_path
from atoll.cli.talk import Failed, paint
from atoll.config import Settings
from atoll.logs import Invocation, Said
from atoll.manifests.every import triggers
from atoll.public_address import public_address

if TYPE_CHECKING:
    from atoll.cli.client import Client

KEYS = "o open   r reload   t run crons   q quit"


class Session:
    def __init__(self, chosen: list[WantedProject], settings: Settings, begun: Begun, *, as_json: bool) -> None:
        self._begun = begun
        self._tasks: set[asyncio.Task[None]] = set()
        projects = [first.project for first in begun.builds]
        watching = Watching(self._on_call, self._on_line, self._on_own_host, self._first_deploy)
        self.node = DevNode(settings, [project.name for project in projects], watching, begun.engine)
        configs = [shown_path(project.config or project.folder) for project in projects]
        self.node.how_to_add = " ".join(["atoll dev", *(f"-c {config}" for config in configs), "-c FILE"])
        self.terminal = Terminal(self.node, as_json=as_json)
        pairs = zip(chosen, begun.builds, strict=True)
        self.workers = [DevWorker(wanted, first, self.node, self.terminal) for wanted, first in pairs]

    async def run(self) -> None:
        """Serve until the session is stopped. Raises StartError."""
        loop = asyncio.get_running_loop()
        for number in signals_to_stop():
            loop.add_signal_handler(number, self._stop)
        if self._begun.interrupt.came:
            return
        try:
            await self.node.start()
            try:
                await self._serve()
            finally:
                for task in self._tasks:
                    task.cancel()
                await self.node.stop()
        finally:
            for worker in self.workers:
                await worker.close()

    def _stop(self) -> None:
        for worker in self.workers:
            worker.stop()

    async def _first_deploy(self) -> None:
        for worker in self.workers:
            await worker.begin()

    async def _serve(self) -> None:
        gc.freeze()  # objects made so far live on: the collector need not scan them
        gc.enable()
        self.node.tools.run_now = self._run_now
        took = (time.monotonic() - self._begun.at) * 1000
        with Keys(self._on_key):  # before the list of workers is printed
            self._greet(took)
            await asyncio.gather(*(worker.follow() for worker in self.workers))
        self.terminal.tell("stopping", "")

    def _greet(self, took_ms: float) -> None:
        first, *others = self.workers
        lines = [f"{paint(first.name, bold=True)} is on {paint(self.url, fg='cyan')}, ready in {took_ms:.0f} ms"]
        lines += [f"{paint(each.name, bold=True)} is on {paint(self._url_of(each), fg='cyan')}" for each in others]
        lines += [line for worker in self.workers if (line := config_line(worker))]
        is_open = bool(self.node.settings.egress_allow)
        if is_open:
            lines.append("fetch() may reach 127.0.0.1 and private addresses; --no-private-network forbids it")
        dashboard = f"http://{CONTROL_HOST}:{self.port}/dashboard/"
        lines.append(f"calls, console, data and sizes are on {paint(dashboard, fg='cyan')}")
        lines.append(paint(KEYS, dim=True))
        workers = [
            {"name": each.name, "url": self._url_of(each), "config": str(each.project.config or "")}
            for each in self.workers
        ]
        self.terminal.tell(
            "ready",
            "",
            *(f"  {line}" for line in lines),
            "",
            url=self.url,
            ms=round(took_ms),
            control=f"http://{CONTROL_HOST}:{self.port}",
            dashboard=dashboard,
            workers=workers,
            private_network=is_open,
        )

    @property
    def port(self) -> int:
        return self.node.server.port

    @property
    def url(self) -> str:
        host = self.node.settings.host
        return f"http://{'localhost' if host in ('127.0.0.1', '0.0.0.0', '::', '::1') else host}:{self.port}/"

    def _url_of(self, worker: DevWorker) -> str:
        return public_address(self.node.settings, self.port).url(worker.name)

    # What happens

    def _on_call(self, record: Invocation) -> None:
        self.terminal.on_call(record)

    def _on_line(self, said: Said) -> None:
        self.terminal.on_line(said)

    def _on_own_host(self, host: str, worker: str) -> None:
        text = f"fetch() to {host} is answered by `{worker}` here, because one of its routes has that host"
        self.terminal.tell("own_host", f"{paint('note:', fg='cyan')} {text}", host=host, worker=worker, message=text)

    # Requests of keys and tools

    def _on_key(self, key: str) -> None:
        if key == "q":
            self._stop()
        elif key == "r":
            for worker in self.workers:
                worker.reload()
        elif key in ("o", "t"):
            task = asyncio.ensure_future(self._open_browser() if key == "o" else self._run_triggers())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _open_browser(self) -> None:
        """Opens a graphical browser only: a text browser would take over this terminal."""
        import webbrowser

        windows = any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))
        opened = (windows or sys.platform == "darwin") and await asyncio.to_thread(webbrowser.open, self.url)
        if not opened:
            self.terminal.tell("no_browser", f"  no browser found: open {self.url} yourself")

    async def _run_triggers(self) -> None:
        """Run every event that can be started by hand, such as a cron."""
        started = 0
        for worker in self.workers:
            for field, trigger in triggers().items():
                for entry in worker.project.triggers.get(field, []) if trigger.run_now is not None else ():
                    started += 1
                    await self._run_now(trigger.handler, worker.name, entry, {})
        if not started:
            self.terminal.tell("no_crons", "  there are no crons: add them under [triggers]")

    async def _run_now(self, handler: str, worker: str, entry: str, query: Mapping[str, str]) -> str:
        """Run an event now. Returns "ok" or the failure. Raises ValueError for an invalid query."""
        run_now = next(each.run_now for each in triggers().values() if each.handler == handler)
        assert run_now is not None
        path, body = run_now(worker, entry, query)
        try:
            ran = await asyncio.to_thread(self._ask, "POST", path, body)
        except Failed as failed:
            return failed.message
        return "ok" if ran["outcome"] == "ok" else f"{ran['outcome']}: {ran['message']}"

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        with self._client() as client:
            return client.call(method, path, body)

    def _client(self) -> Client:
        """Call the session's own control API over the loopback, like any other client."""
        from atoll.cli.client import Client
        from atoll.cli.profiles import NodeTarget

        return Client(NodeTarget(f"http://127.0.0.1:{self.port}"), host=f"{CONTROL_HOST}:{self.port}")


def config_line(worker: DevWorker) -> str:
    """A line that names the config of a worker."""
    project = worker.project
    if project.config is None:
        return ""
    entry = project.main if project.is_entry_named else None
    named = f", with {shown_path(entry)} in place of its `main`" if entry is not None else ""
    return f"config: {shown_path(project.config)}{named}"
