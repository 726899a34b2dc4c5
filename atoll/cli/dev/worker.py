"""One worker of an `atoll dev` session: build, deploy to the node in this process, watch, repeat.

A broken save does no harm: while the worker does not build or its top level throws, requests get a page with the error,
calls in flight finish with their version, and the node, its port and its data stay.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from atoll.api.refusals import Refused
from atoll.assets.rules import NO_WORKER, STUB
from atoll.cli.dev.first import FirstBuild, build
from atoll.cli.dev.node import DevNode
from atoll.cli.dev.terminal import Terminal
from atoll.cli.dev.watch import Reason, Watcher
from atoll.cli.options import WantedProject
from atoll.cli.talk import LEVEL_COLOURS, Failed, paint
from atoll.manifests.config_fields import Finding, FindingLevel
from atoll.manifests.every import project_files
from atoll.observe.sourcemaps import mapped_failure
from atoll.project.build import Builder
from atoll.project.built import Built
from atoll.project.bundle import deploy_body
from atoll.project.model import ProjectError
from atoll.project.neighbours import missing_services


class DevWorker:
    def __init__(self, wanted: WantedProject, first: FirstBuild, node: DevNode, terminal: Terminal) -> None:
        self._wanted = wanted
        self._first = first
        self._node = node
        self._terminal = terminal
        self.project = first.project
        self.name = first.project.name  # fixed for the session: data and address depend on it
        self._builder = first.builder
        self._inputs: tuple[Path, ...] = ()  # of the last successful build
        self._deployed: dict[str, Any] = {}  # the body of the last deploy
        self._live: set[str] = set()  # fields whose files are served from the folder
        self._news = self._missing()  # findings about its config
        self._watcher = Watcher(self.project, self._say)
        self._stopping = False

    async def begin(self) -> None:
        """Deploy the build that was made while the node started."""
        result = await asyncio.wrap_future(self._first.result)
        await self._deploy(result)
        self._watch(result)

    async def follow(self) -> None:
        """Build and deploy after each change, until `stop`."""
        self._watcher.start(self._first.stale)
        async for reason in self._watcher.reasons():
            began = time.monotonic()
            result = await asyncio.to_thread(self._rebuild, reason >= Reason.CONFIG)
            self._watch(result, anew=reason is Reason.ASKED)
            if await self._deploy(result, forced=reason is Reason.ASKED):
                took = (time.monotonic() - began) * 1000
                text = f"  {self._terminal.mark(self.name)}{paint(f'reloaded in {took:.0f} ms', dim=True)}"
                self._terminal.tell("reloaded", text, worker=self.name, ms=round(took, 1))

    def reload(self) -> None:
        self._watcher.poke(Reason.ASKED)

    def stop(self) -> None:
        self._stopping = True
        self._watcher.poke(Reason.STOPPING)
        asyncio.get_running_loop().run_in_executor(None, self._builder.abandon)  # it may be waited for

    async def close(self) -> None:
        await self._watcher.close()
        await asyncio.to_thread(self._builder.close)

    def _watch(self, result: Built | ProjectError, *, anew: bool = False) -> None:
        """Watch the files of the last build; after a failed build, those of the build before."""
        if isinstance(result, Built):
            self._inputs = result.inputs
        self._watcher.watch(self.project, self._inputs, anew=anew)

    def _rebuild(self, anew: bool) -> Built | ProjectError:
        """Runs in a thread. A changed config means a new project and a new builder."""
        if self.project.tool is not None:  # it makes the config
            try:
                self._builder.run_tool()
            except ProjectError as error:
                return error
            anew = True
        if anew:
            try:
                project = self._wanted.read(for_dev=True)
            except ProjectError as error:
                return error
            project.name = self.name
            project.go_without()  # missing bindings do not end a session: they are reported
            told = [*self.project.findings, *self._missing()]
            self._builder.close()
            self.project = project
            found = [*project.findings, *self._missing()]
            self._news = [finding for finding in found if finding not in told]
            self._builder = Builder(project, dev=True, say=self._say)
            if self._stopping:
                self._builder.abandon()
        return build(self._builder)

    def _missing(self) -> list[Finding]:
        return missing_services(self.project, self._node.workers, self._node.how_to_add)

    async def _deploy(self, result: Built | ProjectError, *, forced: bool = False) -> bool:
        """Deploy the build. True if that made a new version."""
        if isinstance(result, ProjectError):
            self._broke("build_failed", str(result), result.hint)
            return False
        self._tell_news()
        self._node.places[self.name].learn(result, self.project.folder)
        self._node.configs[self.name] = self.project.config.name if self.project.config is not None else ""
        if result.modules:
            body = deploy_body(self.project.settings(dev=True), result.main, result.modules)
        else:  # a project of files alone
            body = {**self.project.settings(dev=True), "main": NO_WORKER, "modules": {NO_WORKER: STUB.decode()}}
        try:
            attach = [
                project_files()[field].live(self.project, value, bool(result.modules))
                for field, value in self.project.files.items()
            ]
        except Failed as failed:
            self._broke("deploy_failed", failed.message, failed.hint)
            return False
        if result.modules:
            body |= dict.fromkeys(project_files())  # not those of the version before: they come from the folder
        is_same = body == self._deployed and self._live == {*self.project.files}
        if is_same and not forced and not self._shown_error:
            self._node.serve_live(self.name, attach)
            return False
        try:
            await self._node.deploy(self.name, body)
            self._node.serve_live(self.name, attach)
        except Refused as refused:
            self._broke("deploy_failed", self._placed(refused), refused.hint)
            return False
        self._deployed, self._live = body, {*self.project.files}
        self._node.broke(self.name, "")
        return True

    def _tell_news(self) -> None:
        news, self._news = self._news, []
        for finding in news:
            level = (
                "warning" if finding.level is FindingLevel.ERROR else str(finding.level)
            )  # an error does not end a session
            text = f"`{finding.field}` {finding.text}" + (f" ({finding.hint})" if finding.hint else "")
            shown = f"{paint(level + ':', fg=LEVEL_COLOURS[level])} {self._terminal.mark(self.name)}{text}"
            self._terminal.tell("finding", shown, worker=self.name, level=level, message=text)

    def _placed(self, refused: Refused) -> str:
        """Why the deploy was refused, with the code around the error."""
        if refused.failure is None:
            return str(refused)
        places = self._node.places[self.name]
        frame = places.frame(mapped_failure(refused.failure, places.maps))
        return f"{refused}\n{frame}" if frame else str(refused)

    @property
    def _shown_error(self) -> str:
        return self._node.tools.build_errors.get(self.name, "")

    def _broke(self, event: str, text: str, hint: str) -> None:
        """Print an error once: its text may be written to a file that is watched, which would build again."""
        shown = f"{text}\n\nhint: {hint}" if hint else text
        if shown != self._shown_error and not self._stopping:
            self._node.broke(self.name, shown)
            self._terminal.tell_error(event, self.name, text, hint)

    def _say(self, text: str) -> None:
        self._terminal.tell("note", f"  {self._terminal.mark(self.name)}{text}", worker=self.name, message=text)
