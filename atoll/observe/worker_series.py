"""The series of workers as text for `/metrics`.

There are about 45 lines for each worker. A client library takes 5 us of the event loop for each of them, this file a
tenth of that, because what is the same in every line is written once. Each part takes less than a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from atoll.observe.meter import CPU_BOUNDS, STATUS_CLASSES, WALL_BOUNDS, Tally
from atoll.tallies import Histogram
from atoll.wire.generated import OUTCOME_NAMES

AT_ONCE: Final = 25  # workers in one part
GAUGES_AT_ONCE: Final = 500  # lines in one part, where a worker has one

# (tally, its labels) -> lines
Lines: TypeAlias = Callable[[Tally, str], Iterator[str]]


def escaped(value: str) -> str:
    """A value of a label."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def series_of(tallies: Sequence[Tally], versions: Sequence[Tally]) -> Iterator[bytes]:
    """The text in parts: the counts by worker, then those of single versions."""
    labels = [f'tenant="{escaped(each.tenant)}",worker="{escaped(each.worker)}"}} ' for each in tallies]
    for name, kind, meaning, lines in FAMILIES:
        yield from _family(name, kind, meaning, lines, tallies, labels)
    of_versions = [
        f'tenant="{escaped(each.tenant)}",version="{escaped(each.version)}",worker="{escaped(each.worker)}"}} '
        for each in versions
    ]
    yield from _family(
        "atoll_version_requests_total", "counter", "Finished calls, by version.", _versions, versions, of_versions
    )


def gauge_of(name: str, meaning: str, values: Mapping[tuple[str, str], float]) -> Iterator[bytes]:
    """One number for each (tenant, worker)."""
    yield _heads(name, "gauge", meaning)
    each = list(values.items())
    for first in range(0, len(each), GAUGES_AT_ONCE):
        some = each[first : first + GAUGES_AT_ONCE]
        yield "".join(
            [f'{name}{{tenant="{escaped(t)}",worker="{escaped(w)}"}} {value}\n' for (t, w), value in some]
        ).encode()


def _heads(name: str, kind: str, meaning: str) -> bytes:
    return f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n".encode()


def _family(
    name: str, kind: str, meaning: str, lines: Lines, tallies: Sequence[Tally], labels: Sequence[str]
) -> Iterator[bytes]:
    yield _heads(name, kind, meaning)
    for first in range(0, len(tallies), AT_ONCE):
        some = zip(tallies[first : first + AT_ONCE], labels[first : first + AT_ONCE], strict=True)
        yield "".join([line for tally, each in some for line in lines(tally, each)]).encode()


def _outcomes(name: str) -> Lines:
    def lines(tally: Tally, labels: str) -> Iterator[str]:
        for key, count in sorted(tally.counts.items()):
            outcome, status = divmod(key, STATUS_CLASSES)
            yield f'{name}{{outcome="{OUTCOME_NAMES[outcome]}",status="{status}xx",{labels}{count}\n'

    return lines


def _histogram(name: str, bounds: Sequence[int], pick: Callable[[Tally], Histogram]) -> Lines:
    """Microseconds as seconds, with cumulative counts, as in Prometheus."""
    edges = [*(str(bound / 1e6) for bound in bounds), "+Inf"]
    buckets = [f'{name}_bucket{{le="{edge}",' for edge in edges]

    def lines(tally: Tally, labels: str) -> Iterator[str]:
        histogram = pick(tally)
        count = 0
        for bucket, here in zip(buckets, histogram.counts, strict=True):
            count += here
            yield f"{bucket}{labels}{count}\n"
        yield f"{name}_count{{{labels}{count}\n"
        yield f"{name}_sum{{{labels}{histogram.total / 1e6}\n"

    return lines


def _count(name: str, pick: Callable[[Tally], int], *, shows_zero: bool = False) -> Lines:
    def lines(tally: Tally, labels: str) -> Iterator[str]:
        count = pick(tally)
        if count or shows_zero:
            yield f"{name}{{{labels}{count}\n"

    return lines


def _assets(tally: Tally, labels: str) -> Iterator[str]:
    for status, count in sorted(tally.asset_answers.items()):
        yield f'atoll_asset_requests_total{{status="{status}xx",{labels}{count}\n'


def _near(tally: Tally, labels: str) -> Iterator[str]:
    for limit, count in sorted(tally.near.items()):
        yield f'atoll_near_limit_total{{limit="{limit}",{labels}{count}\n'


_versions = _outcomes("atoll_version_requests_total")

FAMILIES: Final[tuple[tuple[str, str, str, Lines], ...]] = (
    ("atoll_requests_total", "counter", "Finished calls.", _outcomes("atoll_requests_total")),
    (
        "atoll_request_duration_seconds", "histogram", "Time from the request to the end of the call.",
        _histogram("atoll_request_duration_seconds", WALL_BOUNDS, lambda tally: tally.wall),
    ),
    (
        "atoll_request_cpu_seconds", "histogram", "CPU time of a call.",
        _histogram("atoll_request_cpu_seconds", CPU_BOUNDS, lambda tally: tally.cpu),
    ),
    (
        "atoll_subrequests_total", "counter", "Requests of calls to bindings and other servers.",
        _count("atoll_subrequests_total", lambda tally: tally.subrequests, shows_zero=True),
    ),
    ("atoll_near_limit_total", "counter", "Calls that used 80 % or more of a limit, by limit.", _near),
    (
        "atoll_asset_requests_total", "counter", "Requests that static assets answered, without a worker.", _assets,
    ),
    (
        "atoll_asset_bytes_total", "counter", "Bytes of static assets in responses.",
        _count("atoll_asset_bytes_total", lambda tally: tally.sent_bytes),
    ),
    (
        "atoll_automatic_rollbacks_total", "counter", "Rollbacks by the rule of a deployment.",
        _count("atoll_automatic_rollbacks_total", lambda tally: tally.rollbacks),
    ),
)  # fmt: skip
