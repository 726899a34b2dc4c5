"""Runs the benchmarks named on the command line, or all of them, prints one table and writes results.md."""

from __future__ import annotations

import argparse
import sys

from bench import (
    assets,
    bindings,
    built_ins,
    cold_start,
    control,
    density,
    deployed,
    dev,
    echo10k,
    hello,
    hot_path,
    hot_worker,
    idle,
    inner_calls,
    json_api,
    logs,
    many_workers,
    memory,
    mixed,
    noisy_neighbour,
    r2,
    r2_size,
    sandbox_overhead,
    streaming,
    web,
)
from bench.harness import BenchError
from bench.network import run as run_network
from bench.report import Bench, Options, Row, table, write_results

BENCHES: dict[str, Bench] = {
    "network": run_network,
    "inner_calls": inner_calls.run,
    "hello": hello.run,
    "hot_path": hot_path.run,
    "json_api": json_api.run,
    "echo10k": echo10k.run,
    "streaming": streaming.run,
    "assets": assets.run,
    "web": web.run,
    "bindings": bindings.run,
    "r2": r2.run,
    "r2_size": r2_size.run,
    "built_ins": built_ins.run,
    "mixed": mixed.run,
    "many_workers": many_workers.run,
    "cold_start": cold_start.run,
    "logs": logs.run,
    "memory": memory.run,
    "idle": idle.run,
    "density": density.run,
    "deployed": deployed.run,
    "sandbox_overhead": sandbox_overhead.run,
    "control": control.run,
    "hot_worker": hot_worker.run,
    "noisy_neighbour": noisy_neighbour.run,
    "dev": dev.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Atoll beside a raw echo and workerd.")
    parser.add_argument(
        "names", nargs="*", choices=[[], *BENCHES], help=f"some of {', '.join(BENCHES)}  [default: all]"
    )
    parser.add_argument(
        "--seconds", type=int, default=Options.seconds, help="length of each round  [default: %(default)s]"
    )
    parser.add_argument("--rounds", type=int, default=Options.rounds, help="[default: %(default)s]")
    parser.add_argument("--before", default="", metavar="ATOLL", help="the `atoll` command of an older installation")
    chosen = parser.parse_args()
    options = Options(chosen.seconds, chosen.rounds, chosen.before)
    rows: list[Row] = []
    try:
        for name in chosen.names or BENCHES:
            print(f"{name} ...", file=sys.stderr)
            rows += BENCHES[name](options)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        if rows:
            print(table(rows))
    if not chosen.names:
        write_results(rows, options)
    return 0 if all(row.met is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
