"""Crash: kills a node with SIGKILL again and again during puts, multipart completions, uploads of assets and deploys.

    python -m bench.crash --seconds 600

Fails at the first content that was acknowledged and is not whole after the restart, or that is there in part. The
folder of the node stays then. tests/crash.py has the checks.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.crash import Report, crash
from tests.running import Atoll


def tell(report: Report) -> None:
    counts = ", ".join(f"{kind} {count:,}" for kind, count in sorted(report.acknowledged.items()))
    cut, kept = sum(report.interrupted.values()), sum(report.kept.values())
    print(f"kill {report.lives}: acknowledged {counts}; interrupted {cut}, of which stored anyway {kept}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.crash", description="Kill a node while it stores things.")
    parser.add_argument("--seconds", type=float, default=300, help="Default: 300.")
    parser.add_argument("--seed", type=int, default=1, help="Chooses other sizes and moments. Default: 1.")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="atoll-crash-"))
    node = Atoll(folder, engines=1)
    node.start()
    try:
        report = crash(node, options.seconds, options.seed, tell)
    finally:
        node.stop()
    for problem in report.problems:
        print(f"error: {problem}", file=sys.stderr)
    if report.problems:
        print(f"the data is in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    print(f"{report.lives} kills, nothing was lost and nothing is there in part")
    return 0


if __name__ == "__main__":
    sys.exit(main())
