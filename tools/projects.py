"""Which projects run here: `python -m tools.projects FOLDER … [--install] [--build] [--json FILE]`.

Finds every wrangler config below the folders. Each project is deployed to a throw-away node and gets one request. The
result is one of

- runs: the worker loads and answers. An error status that the worker itself chose counts as an answer.
- refused: Atoll says that it lacks something, or that the project has to be built first. Nothing was deployed.
- breaks: the build, the load or the request fails.

The table is for people; `--json FILE` writes the same for programs. `--install` runs `npm install` where packages are
missing, and `--build` runs the tool that builds a project (Vite, a framework). Both run code of the project: use them
on projects that you trust, or in a container. Files are changed only by these two.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from atoll.project.fetch import node_folder
from atoll.project.files import config_in, dev_variables, read_config
from atoll.project.model import ProjectError
from atoll.project.redirect import POINTER
from atoll.project.tools import tool_of

SKIPPED = {
    "node_modules",
    ".git",
    ".wrangler",
    ".venv",
    "dist",
    "build",
    ".svelte-kit",
    ".output",
    ".next",
    ".open-next",
}
REFUSALS = ("Atoll does not have", "Atoll runs JavaScript", "there is no build yet", "is not supported")
NO_FETCH = "does not export a fetch() function"  # it waits for other events
SECONDS = 120
ATOLL = [str(Path(sys.executable).parent / "atoll")]


class Result(NamedTuple):
    project: str
    verdict: str  # runs, refused, breaks
    reason: str
    status: int  # of the answer; 0 if there was none
    doctor: str  # ok, or the first error that `atoll doctor` reports
    seconds: float


class Deployed(NamedTuple):
    folder: Path
    host: str
    failure: tuple[str, str, int] | None
    seconds: float


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def projects_below(folders: list[Path]) -> Iterator[Path]:
    """The folders with a config, each once."""
    seen: set[Path] = set()
    for folder in folders:
        for place, inner, _ in os.walk(folder.absolute()):
            inner[:] = sorted(name for name in inner if name not in SKIPPED)
            path = Path(place)
            if path not in seen and _has_config(path):
                seen.add(path)
                yield path


def _has_config(folder: Path) -> bool:
    try:
        return config_in(folder) is not None or (folder / POINTER).is_file()
    except ProjectError:
        return True  # it is reported like any other


class ThrowAwayNode:
    """A node of its own folder and port, ended with everything in it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="atoll-projects-")
        data = Path(self._folder.name, "data")
        command = [*ATOLL, "serve", "--data", str(data), "--port", "0", "--engines", "1", "--json"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = 0

    def __enter__(self) -> ThrowAwayNode:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()  # it comes when the node serves, and is empty if it ends
        if not line:
            raise SystemExit("the node does not start: try `atoll serve`")
        self.port = urlsplit(json.loads(line)["url"]).port or 80
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=60)
        self._folder.cleanup()


def _ask(port: int, host: str, path: str, seconds: float = 30) -> tuple[int, str, str]:
    """The status of an answer, Atoll's own error code in it, and its first line."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("GET", path, headers={"Host": f"{host}:{port}", "Accept": "*/*"})
        response = connection.getresponse()
        text = response.read(2_000).decode("utf-8", "replace")
        return response.status, response.getheader("x-atoll-error") or "", text
    except (OSError, http.client.HTTPException) as error:
        return 0, "", str(error) or type(error).__name__
    finally:
        connection.close()


def run(command: list[str], folder: Path, seconds: float, environment: dict[str, str]) -> Ran:
    """Run a program and everything that it starts, for a bounded time."""
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            return Ran(124, out, f"{err}\nerror: it took longer than {seconds:.0f} s")
        return Ran(process.returncode, out, err)


class Corpus:
    def __init__(self, node: ThrowAwayNode, options: argparse.Namespace, tools: Path) -> None:
        self._node = node
        self._options = options
        self._seconds: float = options.seconds
        self._api = f"http://127.0.0.1:{node.port}"
        self._names: set[str] = set()
        self._url_of: dict[Path, str] = {}
        for name in ("npm", "npx"):
            script = node_folder() / f"lib/node_modules/npm/bin/{name}-cli.js"
            text = f'#!/bin/sh\nexec "{node_folder()}/bin/node" --use-system-ca "{script}" "$@"\n'
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        (tools / "node").symlink_to(node_folder() / "bin/node")
        path = f"{tools}:{os.environ.get('PATH', '')}"
        self._environment = os.environ | {"PATH": path, "CI": "1", "WRANGLER_SEND_METRICS": "false", "NO_COLOR": "1"}

    def begin(self, folder: Path) -> Deployed:
        """Deploy a project. Requests come later, when the workers that it calls are there too."""
        began = time.monotonic()
        failure = self._prepare(folder) or self._deploy(folder)
        return Deployed(folder, self._url_of.get(folder, ""), failure, time.monotonic() - began)

    def finish(self, deployed: Deployed) -> Result:
        began = time.monotonic()
        verdict, reason, status = deployed.failure or self._request(deployed.host)
        doctor = self._doctor(deployed.folder) if self._options.doctor else ""
        seconds = round(time.monotonic() - began + deployed.seconds, 1)
        return Result(str(deployed.folder), verdict, reason[:300], status, doctor, seconds)

    def _run(self, command: list[str], folder: Path) -> Ran:
        return run(command, folder, self._seconds, self._environment)

    def _prepare(self, folder: Path) -> tuple[str, str, int] | None:
        """Install and build, if that is asked for. A result if it fails."""
        home = next((place for place in (folder, *folder.parents) if (place / "package.json").is_file()), None)
        if self._options.install and home is not None and not (home / "node_modules").is_dir():
            flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--legacy-peer-deps", "--loglevel=error"]
            ran = self._run(["npm", "install", *flags], home)
            if ran.code:
                return "breaks", f"npm install fails: {_last(ran)}", 0
        tool = tool_of(folder)
        if self._options.build and tool is not None and not (folder / POINTER).is_file():
            ran = self._run(["sh", "-c", tool.command], folder)
            if ran.code:
                return "breaks", f"`{tool.command}` fails: {_last(ran)}", 0
        return None

    def _deploy(self, folder: Path) -> tuple[str, str, int] | None:
        """Deploy under the project's own name, which others call it by, unless another project has it."""
        values = dev_variables(folder, "")[0] if folder.is_dir() else {}
        variables = [f"--var={name}={value}" for name, value in values.items()]
        command = [*ATOLL, "deploy", "--api", self._api, *variables, "."]
        name = _name_in(folder)
        if name in self._names:
            command += ["--name", f"{name[:40]}-{len(self._names)}"]
        ran = self._run(command, folder)
        if ran.code:
            reason = _error(ran)
            return ("refused" if any(words in reason for words in REFUSALS) else "breaks"), reason, 0
        self._names.add(name)
        self._url_of[folder] = urlsplit(ran.out.split()[-1]).hostname or ""
        for database in _databases_in(folder):
            ran = self._run([*ATOLL, "d1", "migrations", "apply", database, "--api", self._api], folder)
            if ran.code and "no migrations" not in ran.err:
                return "breaks", f"the migrations of {database} fail: {_error(ran)}", 0
        return None

    def _request(self, host: str) -> tuple[str, str, int]:
        status, code, text = _ask(self._node.port, host, "/", self._seconds)
        if status == 0:
            return "breaks", f"no answer: {text}", 0
        if code and NO_FETCH not in text:
            return "breaks", " ".join(text.split()), status
        return "runs", "", status

    def _doctor(self, folder: Path) -> str:
        """Whether `atoll doctor` sees what happens. It asks the same node, so that it needs no other."""
        ran = self._run([*ATOLL, "doctor", "--json", "."], folder)
        try:
            checks: list[dict[str, Any]] = json.loads(ran.out)
        except ValueError:
            return f"failed: {_error(ran)}"
        errors = [check["text"] for check in checks if check["level"] == "error" and check["about"] == "project"]
        return errors[0][:200] if errors else "ok"


def _config_of(folder: Path) -> dict[str, Any]:
    try:
        config = config_in(folder)
        return read_config(config) if config is not None else {}
    except ProjectError:
        return {}


def _name_in(folder: Path) -> str:
    return str(_config_of(folder).get("name") or folder.name)


def _databases_in(folder: Path) -> list[str]:
    """The databases of a project that have migrations."""
    lists = [value for value in _config_of(folder).values() if isinstance(value, list)]
    named = [each for value in lists for each in value if isinstance(each, dict) and "database_name" in each]
    has = [each for each in named if (folder / str(each.get("migrations_dir", "migrations"))).is_dir()]
    return [str(each["database_name"]) for each in has]


def _error(ran: Ran) -> str:
    """The error of a command of Atoll, with the findings that are errors."""
    lines = [line.removeprefix("error: ") for line in ran.err.splitlines() if line.startswith("error:")]
    return "; ".join(dict.fromkeys(lines)) or _last(ran)


def _last(ran: Ran) -> str:
    lines = [line for line in (ran.err + ran.out).splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or [f"exit code {ran.code}"])[-1].strip()


def shown(result: Result, width: int) -> str:
    doctor = f"  [doctor: {result.doctor}]" if result.doctor else ""
    status = f" {result.status}" if result.status else ""
    return f"{result.project:<{width}}  {result.verdict:<7}{status}  {result.reason}{doctor}".rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--install", action="store_true", help="install missing packages with npm")
    parser.add_argument("--build", action="store_true", help="run the tool that builds a project")
    parser.add_argument("--doctor", action="store_true", help="also compare with what `atoll doctor` says")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each step of a project")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON")
    options = parser.parse_args()
    found = list(projects_below(options.folders))
    width = max((len(str(path)) for path in found), default=0)
    results = []
    with tempfile.TemporaryDirectory() as tools, ThrowAwayNode() as node:
        corpus = Corpus(node, options, Path(tools))
        for deployed in [corpus.begin(folder) for folder in found]:
            results.append(corpus.finish(deployed))
            print(shown(results[-1], width), flush=True)
    counted = Counter(result.verdict for result in results)
    print(", ".join(f"{counted[verdict]} {verdict}" for verdict in ("runs", "refused", "breaks")))
    if options.json is not None:
        options.json.write_text(json.dumps([result._asdict() for result in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
