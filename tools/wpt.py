"""Runs web-platform-tests inside real isolates: `make wpt`, or `python -m tools.wpt ROOT [UNDER …]`.

ROOT is a checkout of https://github.com/web-platform-tests/wpt, or build/wpt, which is fetched. The runner takes the
`*.any.js` and `*.worker.js` files that are meant for workers. Each becomes a worker of its own, with testharness.js and
the scripts that it names, and may fetch from the suite's own server. With `--peer workerd` the tests run there too.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.harness import WORKERD
from tools import wpt_report, wpt_source
from tools.wpt_runtimes import InAtoll, InWorkerd, Outcome, peer
from tools.wpt_suite import Job, Suite

# The standards Atoll follows, as folders of the suite
FOLDERS = (
    *("FileAPI", "WebCryptoAPI", "compression", "console", "dom", "encoding", "eventsource", "fetch", "hr-time"),
    *(
        "html/infrastructure",
        "html/webappapis",
        "mimesniff",
        "performance-timeline",
        "streams",
        "url",
        "urlpattern",
        "user-timing",
        "wasm/jsapi",
        "webidl",
    ),
    *("webmessaging", "websockets", "xhr/formdata"),
)
FETCHED = Path("build/wpt")


class Comparison:
    """The results of one file in Atoll, and in the peer if there is one."""

    def __init__(self, ours: Outcome, theirs: Outcome | None) -> None:
        self.ours = ours
        self.theirs = theirs
        both = [ours] if theirs is None else [ours, theirs]
        self.names = list(dict.fromkeys(name for outcome in both for name in outcome.results))

    @property
    def total(self) -> int:
        """Every test that either of them found; a file without any test counts as one."""
        return len(self.names) or 1

    def passed(self, outcome: Outcome | None) -> int:
        return 0 if outcome is None else sum(outcome.passed(name) for name in self.names)

    def show(self, verbose: bool) -> None:
        peer = "" if self.theirs is None else f"{self.passed(self.theirs):6}"
        print(f"{self.passed(self.ours):6}{peer}{self.total:6}  {self.ours.path}", flush=True)
        if not verbose:
            return
        if self.ours.status != "ok":
            print(f"        {self.ours.status}")
        for name in self.names:
            state, message = self.ours.results.get(name, ("missing", None))
            if state != "pass":
                mark = " (workerd passes)" if self.theirs is not None and self.theirs.passed(name) else ""
                print(f"        {state}{mark}: {name}: {message}")


def summary(found: list[Comparison]) -> list[tuple[str, int, int, int]]:
    """Folder, passed by Atoll, passed by the peer, tests; the sums come last."""
    ours, theirs, total = Counter[str](), Counter[str](), Counter[str]()
    for one in found:
        for folder in (next((name for name in FOLDERS if one.ours.path.startswith(name + "/")), "other"), "in all"):
            ours[folder] += one.passed(one.ours)
            theirs[folder] += one.passed(one.theirs)
            total[folder] += one.total
    return [(name, ours[name], theirs[name], total[name]) for name in sorted(total, key=lambda x: (x == "in all", x))]


def main() -> None:
    parser = argparse.ArgumentParser(description="Run web-platform-tests inside Atoll.")
    parser.add_argument("root", type=Path, help="a checkout of web-platform-tests")
    parser.add_argument("under", nargs="*", help=f"folders or files in it (default: {' '.join(FOLDERS)})")
    parser.add_argument("-v", "--verbose", action="store_true", help="also list failures with their messages")
    parser.add_argument("--peer", choices=["workerd"], help="run the same tests there too (see make bench-peers)")
    parser.add_argument("--wasm", action="store_true", help="let Atoll's workers compile WebAssembly from bytes")
    parser.add_argument("--jobs", type=int, default=4, help="number of tests at a time")
    parser.add_argument("--page", action="store_true", help="write the numbers into the documentation")
    parser.add_argument("--json", type=Path, help="write every result to this file")
    options = parser.parse_args()
    if options.root == FETCHED and not options.root.exists():
        wpt_source.fetch(options.root.resolve(), FOLDERS)
    if not (options.root / "resources/testharness.js").is_file():
        sys.exit(f"error: {options.root} has no resources/testharness.js\n{wpt_source.HINT}")
    if options.page and (options.under or options.peer is None):
        sys.exit("error: the page needs all folders and both runtimes\nhint: --page --peer workerd, and no folders")
    if options.peer is not None and not WORKERD.exists():
        sys.exit(f"error: {WORKERD} is not there\nhint: make bench-peers")
    found = []
    with (
        Suite(options.root.resolve()) as suite,
        InAtoll(options.wasm) as atoll,
        peer(options.peer) as other,
        ThreadPoolExecutor(options.jobs) as threads,
    ):
        jobs = list(suite.jobs(options.under or list(FOLDERS)))
        for one in threads.map(lambda job: compare(suite, atoll, other, job), jobs):
            one.show(options.verbose)
            found.append(one)
    table = summary(found)
    print(f"\n{'Atoll':>7}{'workerd':>9}{'tests':>8}")
    for folder, ours, theirs, total in table:
        print(f"{ours:7}{theirs if options.peer else '-':>9}{total:8} {ours / total:7.1%}  {folder}")
    if options.page:
        wpt_report.write(table, InWorkerd.version(), wpt_source.version_of(options.root))
    if options.json is not None:
        results = {
            one.ours.path: {
                outcome_of: [outcome.status, outcome.results]
                for outcome_of, outcome in (("atoll", one.ours), ("workerd", one.theirs))
                if outcome is not None
            }
            for one in found
        }
        options.json.write_text(json.dumps(results, indent=1))


def compare(suite: Suite, atoll: InAtoll, other: InWorkerd | None, job: Job) -> Comparison:
    try:
        source = suite.worker(job)
    except OSError as error:
        return Comparison(Outcome(job.name, f"error: {error}", {}), None)
    return Comparison(atoll.run(job.name, source), None if other is None else other.run(job.name, source))


if __name__ == "__main__":
    main()
