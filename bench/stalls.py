"""What one attacker does to everybody else: the longest wait of a quiet tenant, and the memory held.

    python -m bench.stalls [--only WORD ...] [--rounds 3] [--before /path/to/older/atoll] [--through nginx]

The attacks are those of tests/stalls. The wait is that of a quiet tenant that asks every 5 ms; the loop lag is the part
of it that is due to Python: how long a request takes that needs no engine. With `--before` an older Atoll is measured
beside this one, in the same run. With `--through nginx` the attacks of clients go through the nginx of deploy/nginx.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from tests.nginx import BehindNginx
from tests.running import Atoll
from tests.stalls.stage import WAIT_MS, Attack, Stage, Stall, all_attacks


def measured(chosen: Attack, rounds: int, command: list[str] | None, kind: type[Atoll] = Atoll) -> Stall | str:
    """The middle of some rounds on a node of its own, so that no attack finds what another left behind."""
    with tempfile.TemporaryDirectory(prefix="atoll-stalls-") as folder:
        stage = Stage(Path(folder), command, kind)
        try:
            stalls = [stage.measure(chosen) for _ in range(rounds)]
            stage.close()
        except (AssertionError, OSError) as error:
            stage.node.stop()
            return str(error).splitlines()[0][:60] if str(error) else type(error).__name__
    return Stall(
        median(stall.wait_ms for stall in stalls),
        median(stall.lag_ms for stall in stalls),
        min(stall.answered for stall in stalls),
        max(stall.memory_mb for stall in stalls),
    )


def cells(stall: Stall | str) -> str:
    if isinstance(stall, str):
        return f"{stall} | | "
    return f"{stall.wait_ms:,.0f} | {stall.lag_ms:,.0f} | {stall.memory_mb:,.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=[""], nargs="+", help="attacks whose name holds one of these")
    parser.add_argument("--rounds", type=int, default=3, help="[default: %(default)s]")
    parser.add_argument("--before", metavar="ATOLL", help="the `atoll` command of an older installation")
    parser.add_argument("--through", choices=["nginx"], help="a proxy that the attacks of clients go through")
    options = parser.parse_args()
    kind = BehindNginx if options.through else Atoll
    columns = ["attack", *(["before: wait, ms", "loop lag, ms", "MB"] if options.before else [])]
    columns += ["after: wait, ms" if options.before else "wait, ms", "loop lag, ms", "MB"]
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    kept = True
    for chosen in all_attacks():
        if any(word in chosen.name for word in options.only) and (not options.through or chosen.is_of_a_client):
            older = [measured(chosen, options.rounds, [options.before, "serve"])] if options.before else []
            newer = measured(chosen, options.rounds, None, kind)
            kept = kept and isinstance(newer, Stall) and newer.wait_ms <= WAIT_MS
            print(f"| {chosen.name} | {' | '.join(map(cells, [*older, newer]))} |", flush=True)
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
