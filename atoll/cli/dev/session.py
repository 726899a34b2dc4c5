"""One `atoll dev`: build, deploy to the node in this process, watch, again.

A save is never worse than the one before: while the project does not build or its top level throws, requests get a page
that says so, calls in flight finish with the version they have, and the node, its port and its data stay.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atoll.cli.dev.command import CONTROL_HOST
from atoll.cli.dev.first import Begun, build
from atoll.cli.dev.node import DevNode
from atoll.cli.dev.terminal import Keys, Terminal
from atoll.cli.dev.watch import Reason, Watcher
from atoll.cli.interrupt import signals_to_stop
from atoll.cli.talk import LEVEL_COLOURS, Failed, paint
from atoll.config import Settings
from atoll.control.refusals import Refused
from atoll.logs import Invocation, Said
from atoll.observe.sourcemaps import mapped_failure
from atoll.project.build import Builder
from atoll.project.built import Built
from atoll.project.bundle import deploy_body
from atoll.project.model import Finding, Level, ProjectError
from atoll.project.read import read_project

if TYPE_CHECKING:
    from atoll.cli.client import Client

KEYS = "o open   r reload   t run crons   q quit"


class Session:
    def __init__(self, path: Path | None, environment: str, settings: Settings, begun: Begun, *, as_json: bool) -> None:
        self._path = path
        self._environment = environment
        self._begun = begun
        self._project = project = begun.build.project
        self._builder = begun.build.builder
        self._inputs: tuple[Path, ...] = ()  # of the last build that went well
        self._deployed: dict[str, Any] = {}  # the body of the last deploy
        self._news: list[Finding] = []  # what there is to say about a config that was changed
        self._watcher = Watcher(project, self._say)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.node = DevNode(settings, project.name, self._on_call, self._on_line, self._first_deploy, begun.engine)
        self.terminal = Terminal(self.node, as_json=as_json)

    async def run(self) -> None:
        """Serve until it is told to stop. Raises StartError."""
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
            await self._watcher.close()
            await asyncio.to_thread(self._builder.close)

    def _stop(self) -> None:
        self._stopping = True
        self._watcher.poke(Reason.STOPPING)
        asyncio.get_running_loop().run_in_executor(None, self._builder.abandon)  # it may be waited for

    async def _first_deploy(self) -> None:
        result = await asyncio.wrap_future(self._begun.build.result)
        await self._deploy(result)
        self._watch(result)

    async def _serve(self) -> None:
        gc.freeze()  # what was made so far stays, and need not be looked through again
        gc.enable()
        self.node.tools.run_cron = self._run_cron
        took = (time.monotonic() - self._begun.at) * 1000
        shown = f"\n  {paint(self._project.name, bold=True)} is on {paint(self.url, fg='cyan')}, ready in {took:.0f} ms"
        shown += f"\n  {paint(KEYS, dim=True)}\n"
        control = f"http://{CONTROL_HOST}:{self.port}"
        with Keys(self._on_key):  # before it says which there are
            self.terminal.tell("ready", shown, url=self.url, ms=round(took), control=control)
            self._watcher.start(self._begun.build.stale)
            await self._follow()
        self.terminal.tell("stopping", "")

    @property
    def port(self) -> int:
        return self.node.server.port

    @property
    def url(self) -> str:
        host = self.node.settings.host
        return f"http://{'localhost' if host in ('127.0.0.1', '0.0.0.0', '::', '::1') else host}:{self.port}/"

    # From files to traffic

    async def _follow(self) -> None:
        async for reason in self._watcher.reasons():
            began = time.monotonic()
            result = await asyncio.to_thread(self._rebuild, reason >= Reason.CONFIG)
            self._watch(result, anew=reason is Reason.ASKED)
            if await self._deploy(result, forced=reason is Reason.ASKED):
                took = (time.monotonic() - began) * 1000
                self.terminal.tell("reloaded", paint(f"  reloaded in {took:.0f} ms", dim=True), ms=round(took, 1))

    def _watch(self, result: Built | ProjectError, *, anew: bool = False) -> None:
        """Follow the files it was built from; of a build that failed, those of the one before."""
        if isinstance(result, Built):
            self._inputs = result.inputs
        self._watcher.watch(self._project, self._inputs, anew=anew)

    def _rebuild(self, anew: bool) -> Built | ProjectError:
        """In a thread. A changed config means another project, and another builder."""
        if anew:
            try:
                project = read_project(self._path, self._environment, for_dev=True)
            except ProjectError as error:
                return error
            project.name = self._project.name  # its data and its address stay while this runs
            project.go_without()  # a session does not end because of them: what is missing is told
            self._news = [finding for finding in project.findings if finding not in self._project.findings]
            self._builder.close()
            self._project = project
            self._builder = Builder(project, dev=True, say=self._say)
            if self._stopping:
                self._builder.abandon()
        return build(self._builder)

    async def _deploy(self, result: Built | ProjectError, *, forced: bool = False) -> bool:
        """Make it the version that answers; True when it is a new one."""
        if isinstance(result, ProjectError):
            self._broke("build_failed", str(result), result.hint)
            return False
        for finding in self._news:
            level = "warning" if finding.level is Level.ERROR else str(finding.level)  # a session goes on without it
            text = f"`{finding.field}` {finding.text}" + (f" ({finding.hint})" if finding.hint else "")
            self.terminal.tell(
                "finding", f"{paint(level + ':', fg=LEVEL_COLOURS[level])} {text}", level=level, message=text
            )
        self._news = []
        self.node.places.learn(result, self._project.folder)
        body = deploy_body(self._project.settings(), result.main, result.modules)
        if body == self._deployed and not forced and not self.node.tools.build_error:
            return False
        try:
            await self.node.deploy(body)
        except Refused as refused:
            self._broke("deploy_failed", self._placed(refused), refused.hint)
            return False
        self._deployed = body
        self.node.broke("")
        return True

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        with self._client() as client:
            return client.call(method, path, body)

    def _client(self) -> Client:
        """Our own control API, over the loopback like any other client's."""
        from atoll.cli.client import Client
        from atoll.cli.profiles import Target

        return Client(Target(f"http://127.0.0.1:{self.port}"), host=f"{CONTROL_HOST}:{self.port}")

    def _placed(self, refused: Refused) -> str:
        """Why it was refused, with the code around the place that is at fault."""
        if refused.failure is None:
            return str(refused)
        places = self.node.places
        frame = places.frame(mapped_failure(refused.failure, places.maps))
        return f"{refused}\n{frame}" if frame else str(refused)

    def _broke(self, event: str, text: str, hint: str) -> None:
        """Told once: a file that this very text is written to may be one that is watched."""
        shown = f"{text}\n\nhint: {hint}" if hint else text
        if shown != self.node.tools.build_error and not self._stopping:
            self.node.broke(shown)
            self.terminal.tell_error(event, text, hint)

    # What people and tools ask for

    def _on_call(self, record: Invocation) -> None:
        self.terminal.on_call(record)

    def _on_line(self, said: Said) -> None:
        self.terminal.on_line(said)

    def _on_key(self, key: str) -> None:
        if key == "q":
            self._stop()
        elif key == "r":
            self._watcher.poke(Reason.ASKED)
        elif key in ("o", "t"):
            task = asyncio.ensure_future(self._open_browser() if key == "o" else self._run_crons())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _open_browser(self) -> None:
        """A browser with windows, that is: one for terminals would take this one over."""
        import webbrowser

        windows = any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))
        opened = (windows or sys.platform == "darwin") and await asyncio.to_thread(webbrowser.open, self.url)
        if not opened:
            self.terminal.tell("no_browser", f"  there is no browser here: open {self.url} where there is one")

    async def _run_crons(self) -> None:
        if not self._project.crons:
            self.terminal.tell("no_crons", "  there are no crons: add them under [triggers]")
        for cron in self._project.crons:
            await self._run_cron(cron, None)

    async def _run_cron(self, cron: str, at_ms: float | None) -> str:
        """Run the scheduled handler now; "ok", or how it failed."""
        body: dict[str, Any] = {"cron": cron} if cron else {}
        if at_ms is not None:
            body["scheduled_time"] = int(at_ms)
        try:
            ran = await asyncio.to_thread(self._ask, "POST", f"/api/workers/{self._project.name}/crons/run", body)
        except Failed as failed:
            return failed.message
        return "ok" if ran["outcome"] == "ok" else f"{ran['outcome']}: {ran['message']}"

    def _say(self, text: str) -> None:
        self.terminal.tell("note", f"  {text}", message=text)
