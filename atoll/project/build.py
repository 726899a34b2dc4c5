"""Sources -> modules. Plain scripts are used as they are, with types removed; everything else goes through the bundler.

Plain means: .js and .ts, relative imports with their extension, no JSX, no npm package. Then no bundler is needed, and
lines in a stack trace are lines of the source. A Builder keeps its helper processes for the next build.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from atoll.project.blobs import with_blobs
from atoll.project.border import Border, tsconfigs_of
from atoll.project.built import BuildFailed, Built, BuiltModule, Diagnostic
from atoll.project.esbuild import Esbuild
from atoll.project.fetch import esbuild, node_folder
from atoll.project.model import Project, ProjectError
from atoll.project.rules import additional_modules
from atoll.project.steps import Steps
from atoll.project.tools import needs_build
from atoll.workers import ModuleKind

# An import of a package in the main script, as nearly every bundled project has one: then skip the plain build.
BARE_IMPORT = re.compile(
    r"""^import\b(?!\s+type\b)[^"'`;]{0,4000}+["']((?!node:|cloudflare:|atoll:)[\w@][^"'\n]{0,300}+)["']""",
    re.MULTILINE,
)


BUILD_FIRST = "correct it, or build it first"


class Builder:
    """Builds one project, repeatedly. Blocking; use as a context manager."""

    def __init__(self, project: Project, *, dev: bool = False, say: Callable[[str], None] | None = None) -> None:
        self._project = project
        self._dev = dev
        self._say = say
        self._steps = Steps()
        self._plain: subprocess.Popen[bytes] | None = None
        self._bundler: Esbuild | None = None
        self.why_bundled = ""

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def build(self) -> Built:
        """Raises ProjectError, and BuildFailed for errors in the sources."""
        project = self._project
        if project.main is None and project.files:
            if project.build.command:
                self._run_command()
            return Built("", (), (), bundled=False)  # no code: its files are all there is
        if project.main is None:
            where = project.config.name if project.config is not None else "the project"
            raise ProjectError(f"`main` is missing in {where}", 'name the script: main = "src/index.js"')
        if project.build.command:
            self._run_command()
        self._check_main(project.main)
        border = Border(project)
        border.check_entry(project.main)
        return with_blobs(project, self._modules(project.main, border), border)

    def _modules(self, main: Path, border: Border) -> Built:
        project = self._project
        self.why_bundled = self._asks_for_bundler()
        if not self.why_bundled:
            answer = self._walk(main)
            if "bundle" not in answer:
                border.check_files(map(Path, answer.get("inputs", ())))
                return self._taken(answer, main)
            self.why_bundled = answer["bundle"]
        if project.build.no_bundle:
            raise ProjectError(f"no_bundle is set, but a bundler is needed: {self.why_bundled}", "remove no_bundle")
        for path in tsconfigs_of(project):
            border.check_entry(path)
        if self._bundler is not None and not self._bundler.alive:
            self._bundler.close()
            self._bundler = None
        if self._bundler is None:
            self._bundler = Esbuild(esbuild(self._say, self._steps), project, dev=self._dev)
        return self._bundler.build(border)

    def run_tool(self) -> None:
        """Run the tool that builds the project. Its config is then to be read again. Raises ProjectError."""
        tool = self._project.tool
        assert tool is not None
        ran = self._steps.run(tool.command, tool.folder)
        if ran.returncode != 0:
            said = (ran.stdout + ran.stderr).strip()[-4000:]
            raise ProjectError(
                f"`{tool.command}` ended with {ran.returncode}\n{said}", f"{tool.name} says what is wrong"
            )

    def _check_main(self, main: Path) -> None:
        project = self._project
        tool = project.tool
        if tool is not None and needs_build(project, tool):
            raise ProjectError(f"{tool.name} builds this project, and there is no build yet", f"run `{tool.command}`")
        where = f"`main` in {project.config.name}" if project.config is not None else "the script"
        if main.suffix == ".py":
            raise ProjectError(f"{where} is {main.name}: Atoll runs JavaScript, not Python", "write it in JavaScript")
        if not main.is_file():
            shown = os.path.relpath(main, project.folder)
            what = "the build step does not make it" if project.build.command else "there is no such file"
            raise BuildFailed([Diagnostic(f"{where} is {shown}, but {what}")], project.folder, (main,), BUILD_FIRST)

    def abandon(self) -> None:
        """Called from another thread: stops the programs that `build` waits for, so that it fails."""
        self._steps.abandon()

    def close(self) -> None:
        if self._bundler is not None:
            self._bundler.close()
        if self._plain is not None:
            _end(self._plain)
        self._bundler = self._plain = None

    def _asks_for_bundler(self) -> str:
        options = self._project.build
        if options.no_bundle:
            return ""
        main = self._project.main
        if main is not None and main.suffix not in (".js", ".mjs", ".ts", ".mts"):
            return f"{main.name} is not a plain script"
        wishes = ("minify", "alias", "define", "rules", "find_modules", "tsconfig", "jsx_factory", "jsx_fragment")
        wish = next((f"`{name}` is set" for name in wishes if getattr(options, name)), "")
        package = BARE_IMPORT.search(main.read_text("utf-8", "replace")) if main is not None and not wish else None
        return wish if package is None else f"it imports {package[1]}"

    def _run_command(self) -> None:
        """Run the project's own build step. If it fails, its output is part of the error."""
        options = self._project.build
        ran = self._steps.run(options.command, options.cwd or self._project.folder)
        if ran.returncode != 0:
            said = (ran.stdout + ran.stderr).strip()[-4000:]
            raise ProjectError(f"`{options.command}` ended with {ran.returncode}\n{said}", "correct build.command")

    def _walk(self, main: Path) -> Any:
        options, folder = self._project.build, self._project.folder
        modules = additional_modules(self._project) if options.find_modules else {}
        request = {
            "main": str(main),
            "folder": str(folder),
            "asItIs": options.no_bundle,
            "base": str(options.base or main.parent if options.no_bundle else folder),
            "modules": [[str(path), kind] for path, kind in modules.items()],
        }
        for _ in range(2):  # a helper that has died is restarted, once
            if self._plain is None:
                self._plain = self._start_plain()
            assert self._plain.stdin is not None and self._plain.stdout is not None
            try:
                self._plain.stdin.write(json.dumps(request).encode() + b"\n")
                self._plain.stdin.flush()
                line = self._plain.stdout.readline()
            except OSError:
                line = b""
            if line:
                return json.loads(line)
            _end(self._plain)
            self._plain = None
        raise ProjectError("the helper process that reads the sources died", "report this, with the project")

    def _start_plain(self) -> subprocess.Popen[bytes]:
        with as_file(files("atoll.project") / "plain.mjs") as script:
            node = node_folder() / "bin" / "node"
            return subprocess.Popen(
                [str(node), "--experimental-vm-modules", "--no-warnings", str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is handled by this process
            )

    def _taken(self, answer: Any, main: Path) -> Built:
        folder = self._project.folder
        if "errors" in answer:
            raise BuildFailed([Diagnostic(**error) for error in answer["errors"]], folder, (main,))
        modules = tuple(
            BuiltModule(module["path"], ModuleKind(module["kind"]), base64.b64decode(module["base64"]), module["map"])
            for module in answer["modules"]
        )
        return Built(answer["main"], modules, tuple(map(Path, answer["inputs"])), bundled=False)


def _end(process: subprocess.Popen[bytes]) -> None:
    """A helper ends when its stdin is closed."""
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        try:
            pipe.close()
        except OSError:  # unwritten data has no reader any more
            pass
    process.wait()
