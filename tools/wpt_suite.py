"""A checkout of web-platform-tests: which files are tests for workers, and the worker that runs each of them."""

from __future__ import annotations

import json
import os
import posixpath
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

HERE = Path(__file__).parent
PATIENCE_MS = {"normal": 20_000, "long": 45_000}  # two to four times what browsers get, because machines are busy
SERVERLESS = {"WebCryptoAPI", "compression", "html"}  # folders whose tests need no server
WORKERS = {
    "worker",
    "dedicatedworker",
    "serviceworker",
    "sharedworker",
    "jsshell",
}  # names that a test may use for its scope

NOT_SERVED = {"?wss", "?wpt_flags=h2"}  # variants that need TLS or HTTP/2

STRICT = re.compile(r"""(?:\s+|//.*\n|/\*[\s\S]*?\*/)*["']use strict["']""")
META = re.compile(r"^//\s*META:\s*(\w+)=(.*?)\s*$", re.MULTILINE)
DECLARED = re.compile(r"^(?:async )?function\s*\*?\s*(\w+)", re.MULTILINE)
OBJECTS = re.compile(r"add_objects\((.*?)\)\s*;?\s*$", re.DOTALL | re.MULTILINE)
EXPRESSION = re.compile(r"""(['"`])((?:(?!\1).)+)\1""")
IMPORTED = re.compile(r"importScripts\((.*?)\)", re.DOTALL)
QUOTED = re.compile(r"""["']([^"']+)["']""")


@dataclass(frozen=True)
class Job:
    """A test to run: a file of the suite and its variant."""

    path: str
    variant: str

    @property
    def name(self) -> str:
        return self.path + self.variant


class Suite:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.prelude = (HERE / "wpt_prelude.js").read_text()
        self.process: subprocess.Popen[str] | None = None
        self.origin = ""
        self.served = cache(self.fetch)  # a file of the suite, with its server's substitutions

    def __enter__(self) -> Self:
        """Starts the suite's own server."""
        command = [sys.executable, str(HERE / "wpt_server.py"), str(self.root)]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        ports = self.process.stdout.readline().split()
        if not ports:
            raise OSError(f"the server of web-platform-tests does not start: {' '.join(command)}")
        self.origin = f"http://localhost:{ports[0]}"
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process is not None
        self.process.communicate()

    def fetch(self, path: str) -> str:
        with urllib.request.urlopen(self.origin + path, timeout=30) as response:
            text: str = response.read().decode("utf-8", errors="replace")
            return text

    def jobs(self, under: list[str]) -> Iterator[Job]:
        """The tests for workers in these folders, as a browser runs them over http."""
        for name in under:
            place = self.root / name
            for file in [place] if place.is_file() else sorted(place.rglob("*.js")):
                if file.name.endswith((".any.js", ".worker.js")) and self.is_served(file):
                    yield from self.variants(file)

    def is_served(self, file: Path) -> bool:
        """True if the server supports the test. Tests for secure contexts run if they need no server."""
        needs = set(file.name.split("."))
        return "h2" not in needs and ("https" not in needs or file.relative_to(self.root).parts[0] in SERVERLESS)

    def variants(self, file: Path) -> Iterator[Job]:
        meta = META.findall(file.read_text("utf-8", errors="replace"))
        scopes = {scope.strip() for key, value in meta if key == "global" for scope in value.split(",")}
        if file.name.endswith(".worker.js") or not scopes or scopes & WORKERS:
            path = file.relative_to(self.root).as_posix()
            for variant in [value for key, value in meta if key == "variant"] or [""]:
                if variant not in NOT_SERVED:
                    yield Job(path, variant)

    def worker(self, job: Job) -> str:
        """The worker that runs one test: a classic script, as the tests are."""
        path = "/" + job.path
        test = self.served(path)
        meta = META.findall(test)
        asked = [value for key, value in meta if key == "script"] + [
            name for names in IMPORTED.findall(test) for name in QUOTED.findall(names)
        ]
        names = [absolute(path, name) for name in asked if "testharness" not in posixpath.basename(name)]
        scripts = [self.served(name).replace("eval(desc)", "evaluate(desc)") for name in names]
        functions = dict.fromkeys(
            name for text in [*scripts, *([] if STRICT.match(test) else [test])] for name in DECLARED.findall(text)
        )
        title = next((value for key, value in meta if key == "title"), posixpath.basename(path))
        parts = [
            f"const TEST_URL = {json.dumps(self.origin + path + job.variant)};",
            f"const TITLE = {json.dumps(title)};",
            f"const PATIENCE = {PATIENCE_MS['long' if ('timeout', 'long') in meta else 'normal']};",
            self.prelude,
            f"const evaluate = (text) => ({{ {expressions(test)} }})[text]();",
            "function runTest(withoutWorkerScopes) {",
            # A function of a classic script is a property of the global object.
            *(f'if (typeof {name} === "function") globalThis.{name} = {name};' for name in functions),
            f"withoutWorkerScopes(function () {{ {self.served('/resources/testharness.js')} }});",
            "globalThis.reportTo();",
            *scripts,
            # A directive at the beginning of a script must be at the beginning of a function.
            f'(function () {{ "use strict"; {test} }}());' if STRICT.match(test) else test,
            "}",
        ]
        return "\n".join(parts)


def absolute(path: str, name: str) -> str:
    """The path in the suite of a file that another file names."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def expressions(test: str) -> str:
    """The strings that idlharness.js would evaluate, as functions: a worker may not compile strings."""
    texts = {text for objects in OBJECTS.findall(test) for _, text in EXPRESSION.findall(objects)}
    return ", ".join(f"{json.dumps(text)}: () => ({text})" for text in sorted(texts))
