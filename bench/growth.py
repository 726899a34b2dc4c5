"""How the cost of a request grows with loaded workers and with connections, as a chart for the documents.

    python -m bench.growth [--seconds 4] [--rounds 3] [--svg docs/images/growth.svg]

Each request has a random worker, path and set of headers. The chart shows CPU time per request, by process: engines and
everything else, which is Python. The rates of the same runs are in the table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.costs import Cost, cost, median
from bench.harness import HERE, BenchError
from bench.many_workers import CONNECTIONS, node_of, varied_requests
from bench.mixed import expect_all, named_workers
from bench.report import Options, Row, machine, table

WORKERS = (1, 10, 100, 1_000)
CLIENTS = (1, 32, 256, 2_048)
AMONG = 100  # workers while the connections grow
MOST_GROWTH = 2.0  # from 1 to 1,000 workers

Curve = dict[int, Cost]


def by_workers(options: Options) -> Curve:
    curve: Curve = {}
    for count in WORKERS:
        with node_of(count) as server:
            expect_all(server, named_workers(count))
            lua = varied_requests(count)
            cost(server, "w0", "/", CONNECTIONS, 3, lua)
            curve[count] = median([cost(server, "w0", "/", CONNECTIONS, options.seconds, lua) for _ in rounds(options)])
    return curve


def by_connections(options: Options) -> Curve:
    found: dict[int, list[Cost]] = {count: [] for count in CLIENTS}
    with node_of(AMONG, tenant_calls=2 * CLIENTS[-1]) as server:
        expect_all(server, named_workers(AMONG))
        lua = varied_requests(AMONG)
        cost(server, "w0", "/", CONNECTIONS, 3, lua)
        for _ in rounds(options):
            for count in CLIENTS:
                found[count].append(cost(server, "w0", "/", count, options.seconds, lua))
    return {count: median(costs) for count, costs in found.items()}


def rounds(options: Options) -> range:
    return range(options.rounds)


def rows_of(curve: Curve, what: str) -> list[Row]:
    return [
        row
        for count, each in curve.items()
        for row in (
            Row(f"{count:,} {what}", "req/s", {"atoll": each.rate}),
            Row(f"{count:,} {what}, CPU", "us/req", {"atoll": each.all}),
        )
    ]


# The chart: plain SVG whose colours work on light and dark pages.

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 360, 260, 46, 44, 12, 44
COLOURS = {"all": "#2f81f7", "engines": "#d2691e", "python": "#3a9d5d"}
NAMES = {"all": "all processes", "engines": "engines", "python": "Python"}


def chart(panels: Sequence[tuple[str, Curve]], note: str) -> str:
    most = max(each.all for _, curve in panels for each in curve.values())
    top = next(step for step in (20, 40, 60, 80, 100, 150, 200, 300, 500, 1_000, 5_000) if step >= 1.05 * most)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * len(panels)} {HEIGHT + 40}" '
        'font-family="system-ui, sans-serif" font-size="11" fill="#888">'
    ]
    for number, (title, curve) in enumerate(panels):
        parts.append(f'<g transform="translate({number * WIDTH} 0)">{panel(title, curve, top)}</g>')
    for number, (key, name) in enumerate(NAMES.items()):
        x = LEFT + number * 110
        parts.append(f'<rect x="{x}" y="{HEIGHT + 6}" width="10" height="10" fill="{COLOURS[key]}"/>')
        parts.append(f'<text x="{x + 15}" y="{HEIGHT + 15}">{name}</text>')
    parts.append(f'<text x="{LEFT}" y="{HEIGHT + 34}" font-size="9">{note}</text></svg>')
    return "\n".join(parts) + "\n"


def panel(title: str, curve: Curve, top: float) -> str:
    inner, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    across = {count: LEFT + inner * place / (len(curve) - 1) for place, count in enumerate(curve)}

    def up(value: float) -> float:
        return TOP + tall * (1 - value / top)

    parts = [f'<text x="{LEFT}" y="20" font-size="13">{title}</text>']
    for tick in range(5):
        value = top * tick / 4
        parts.append(
            f'<path d="M{LEFT} {up(value):.1f}H{WIDTH - RIGHT}" stroke="#888" stroke-opacity=".25"/>'
            f'<text x="{LEFT - 6}" y="{up(value) + 4:.1f}" text-anchor="end">{value:g}</text>'
        )
    parts.append(f'<text x="{LEFT}" y="{TOP - 12}">microseconds of CPU per request</text>')
    for count, x in across.items():
        anchor = "end" if count == max(across) else "middle"
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="{anchor}">{count:,}</text>')
    for key, colour in COLOURS.items():
        values = {count: {"all": c.all, "engines": c.engines, "python": c.rest}[key] for count, c in curve.items()}
        line = " ".join(f"{across[count]:.1f},{up(value):.1f}" for count, value in values.items())
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{across[count]:.1f}" cy="{up(value):.1f}" r="3" fill="{colour}"/>'
            for count, value in values.items()
        ]
        if key == "all":
            parts += [
                f'<text x="{min(across[count], WIDTH - RIGHT - 10):.1f}" y="{up(value) - 7:.1f}" text-anchor="middle" '
                f'fill="{colour}">{value:.0f}</text>'
                for count, value in values.items()
            ]
    return "".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=Options.seconds)
    parser.add_argument("--rounds", type=int, default=Options.rounds)
    parser.add_argument("--svg", type=Path, default=HERE.parent / "docs/images/growth.svg")
    given = parser.parse_args()
    options = Options(given.seconds, given.rounds)
    try:
        workers, clients = by_workers(options), by_connections(options)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    growth = workers[WORKERS[-1]].all / workers[1].all
    grown = Row(f"growth from 1 to {WORKERS[-1]:,} workers", "x", {"atoll": growth}, "2", growth <= MOST_GROWTH)
    print(table([*rows_of(workers, f"workers, {CONNECTIONS} connections"), *rows_of(clients, "connections"), grown]))
    panels = [
        (f"loaded workers, {CONNECTIONS} connections", workers),
        (f"connections, {AMONG} workers", clients),
    ]
    given.svg.write_text(chart(panels, f"python -m bench.growth, {machine()}"))
    print(f"wrote {given.svg}")
    return 0 if growth <= MOST_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
