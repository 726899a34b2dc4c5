"""Runs web-platform-tests inside real isolates: `make wpt WPT=/path/to/wpt`, or `python -m tools.wpt ROOT [UNDER …]`.

ROOT is a checkout of https://github.com/web-platform-tests/wpt; nothing of it is kept here. What runs are
`*.any.js` and `*.worker.js` files that are meant for workers; each becomes a worker of its own, with testharness.js and
the scripts it asks for. The suite's own server is not there: a test can fetch the data files it names and nothing else.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.running import Atoll

PRELUDE = Path(__file__).with_name("wpt_prelude.js")
STATUS = ("pass", "fail", "timeout", "notrun", "precondition")
LIMITS = {"cpu_ms": 30_000, "wall_ms": 60_000, "memory_mb": 256}

# The standards Atoll follows, as folders of the suite
FOLDERS = (
    *("FileAPI", "WebCryptoAPI", "compression", "console", "dom/abort", "dom/events", "encoding", "fetch/api"),
    *("hr-time", "html/webappapis", "performance-timeline", "streams", "url", "urlpattern", "user-timing"),
    *("wasm/jsapi", "webidl", "webmessaging", "xhr/formdata"),
)
WORKERS = {"worker", "dedicatedworker", "serviceworker", "sharedworker"}  # what a test may call its scope

META = re.compile(r"^//\s*META:\s*(\w+)=(.*?)\s*$", re.MULTILINE)
FETCHED = re.compile(r"""(?:fetch|fetch_json|load)\w*\(\s*["'`]([^"'`\s]+\.(?:json|idl|txt))""")
IDL_TEST = re.compile(r"idl_test\(\s*\[(.*?)\]\s*,\s*\[(.*?)\]", re.DOTALL)
QUOTED = re.compile(r"""["']([^"']+)["']""")
DECLARED = re.compile(r"^(?:async )?function\s*\*?\s*(\w+)", re.MULTILINE)
OBJECTS = re.compile(r"add_objects\((.*?)\)\s*;?\s*$", re.DOTALL | re.MULTILINE)
EXPRESSION = re.compile(r"""(['"`])((?:(?!\1).)+)\1""")
IMPORTED = re.compile(r"""importScripts\(\s*["']([^"']+)["']""")


@dataclass
class Outcome:
    """What came of one file, or one variant of it: how the harness ended, and name, state and message of each test."""

    path: str
    status: str
    results: list[tuple[str, str, str | None]]

    @property
    def passed(self) -> int:
        return sum(state == "pass" for _, state, _ in self.results)

    @property
    def total(self) -> int:
        """A file that did not come to its end counts as one failure more."""
        return len(self.results) + (self.status != "ok")


class Suite:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.prelude = PRELUDE.read_text()
        self.harness = self.read("/resources/testharness.js")

    def read(self, path: str) -> str:
        return (self.root / path.lstrip("/")).read_text("utf-8", errors="replace")

    def files(self, under: list[str]) -> Iterator[Path]:
        """The tests meant for workers in these folders; those called `.sub.` or `.h2.` need the suite's own server."""
        for name in under:
            place = self.root / name
            for file in [place] if place.is_file() else sorted(place.rglob("*.js")):
                if ".sub." not in file.name and ".h2." not in file.name and self.is_for_workers(file):
                    yield file

    def is_for_workers(self, file: Path) -> bool:
        if file.name.endswith(".worker.js"):
            return True
        lists = [value for key, value in self.meta(file) if key == "global"]
        scopes = {scope for value in lists for scope in value.split(",")}
        return file.name.endswith(".any.js") and (not scopes or bool(scopes & WORKERS))

    @staticmethod
    def meta(file: Path) -> list[tuple[str, str]]:
        return META.findall(file.read_text("utf-8", errors="replace"))

    def variants(self, file: Path) -> list[str]:
        return [value for key, value in self.meta(file) if key == "variant"] or [""]

    def worker(self, file: Path, variant: str) -> str:
        """The worker that runs `file`: a classic script, since that is what tests are."""
        path = "/" + file.relative_to(self.root).as_posix()
        test = self.read(path)
        asked = [value for key, value in META.findall(test) if key == "script"] + IMPORTED.findall(test)
        names = [absolute(path, name) for name in asked if "testharness" not in name]
        scripts = [self.read(name).replace("eval(desc)", "evaluate(desc)") for name in names]
        url = json.dumps(f"http://web-platform.test:8000{path}{variant}")
        functions = dict.fromkeys(name for text in [*scripts, test] for name in DECLARED.findall(text))
        parts = [
            f"const RESOURCES = {json.dumps(self.resources(path, [test, *scripts]))};",
            f"const TEST_URL = {url};",
            self.prelude,
            f"const evaluate = (text) => ({{ {expressions(test)} }})[text]();",
            "function runTest(withoutWorkerScopes) {",
            # A function of a classic script is a property of the global object.
            *(f'if (typeof {name} === "function") globalThis.{name} = {name};' for name in functions),
            f"withoutWorkerScopes(function () {{ {self.harness} }});",
            "globalThis.reportTo();",
            *scripts,
            test,
            "}",
        ]
        return "\n".join(parts)

    def resources(self, path: str, texts: list[str]) -> dict[str, str]:
        """The data files that the test and its scripts fetch, as far as their names stand in the text."""
        names = {absolute(path, name) for text in texts for name in FETCHED.findall(text)}
        for text in texts:
            for lists in IDL_TEST.findall(text):
                names |= {f"/interfaces/{name}.idl" for quoted in lists for name in QUOTED.findall(quoted)}
        return {name: self.read(name) for name in sorted(names) if (self.root / name.lstrip("/")).is_file()}


def absolute(path: str, name: str) -> str:
    """A path of the suite that a file of it names."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def expressions(test: str) -> str:
    """What idlharness.js would evaluate, as functions: a worker compiles no strings."""
    texts = {text for objects in OBJECTS.findall(test) for _, text in EXPRESSION.findall(objects)}
    return ", ".join(f"{json.dumps(text)}: () => ({text})" for text in sorted(texts))


def run(atoll: Atoll, suite: Suite, number: int, file: Path, variant: str) -> Outcome:
    path = file.relative_to(suite.root).as_posix() + variant
    try:
        body = {"name": f"wpt-{number}", "script": suite.worker(file, variant), "limits": LIMITS}
    except OSError as error:
        return Outcome(path, f"error: {error}", [])
    answer = atoll.control("POST", "/api/workers", body)
    if answer.status != 201:
        return Outcome(path, f"error: {answer.json['error']['message']}", [])
    answer = atoll.get(f"wpt-{number}")
    atoll.control("DELETE", f"/api/workers/wpt-{number}")
    if answer.status != 200:
        return Outcome(path, f"error: {answer.status} {answer.text[:300]}", [])
    found = answer.json
    return Outcome(path, found["status"], [(name, STATUS[state], message) for name, state, message in found["results"]])


def show(outcome: Outcome, verbose: bool) -> None:
    print(f"{outcome.passed:5}/{outcome.total:<5} {outcome.path}")
    if not verbose:
        return
    if outcome.status != "ok":
        print(f"        {outcome.status}")
    for name, state, message in outcome.results:
        if state != "pass":
            print(f"        {state}: {name}: {message}")


def summary(outcomes: list[Outcome]) -> None:
    passed, total = Counter[str](), Counter[str]()
    for outcome in outcomes:
        folder = next((name for name in FOLDERS if outcome.path.startswith(name + "/")), "other")
        passed[folder] += outcome.passed
        total[folder] += outcome.total
    print()
    for folder in sorted(total):
        print(f"{passed[folder]:6}/{total[folder]:<6} {passed[folder] / max(total[folder], 1):6.1%}  {folder}")
    everything = sum(total.values())
    print(f"{sum(passed.values()):6}/{everything:<6} {sum(passed.values()) / max(everything, 1):6.1%}  in all")


def main() -> None:
    parser = argparse.ArgumentParser(description="Run web-platform-tests inside Atoll.")
    parser.add_argument("root", type=Path, help="a checkout of web-platform-tests")
    parser.add_argument("under", nargs="*", help=f"folders or files in it (default: {' '.join(FOLDERS)})")
    parser.add_argument("-v", "--verbose", action="store_true", help="also what failed, and how")
    parser.add_argument("--json", type=Path, help="write every result to this file")
    options = parser.parse_args()
    if not (options.root / "resources/testharness.js").is_file():
        sys.exit(
            f"error: {options.root} has no resources/testharness.js\n"
            "hint: git clone --depth 1 https://github.com/web-platform-tests/wpt, then make wpt WPT=wpt"
        )
    suite = Suite(options.root.resolve())
    files = suite.files(options.under or list(FOLDERS))
    jobs = [(file, variant) for file in files for variant in suite.variants(file)]
    with tempfile.TemporaryDirectory() as folder:
        atoll = Atoll(Path(folder), script_bytes=50_000_000)
        atoll.start()
        outcomes = []
        try:
            with ThreadPoolExecutor(4) as threads:
                for outcome in threads.map(lambda job: run(atoll, suite, job[0], *job[1]), enumerate(jobs)):
                    show(outcome, options.verbose)
                    outcomes.append(outcome)
        finally:
            atoll.stop()
    summary(outcomes)
    if options.json is not None:
        found = {outcome.path: [outcome.status, outcome.results] for outcome in outcomes}
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
