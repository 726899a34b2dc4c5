"""A computing worker, in one isolate and spread over all engines: calls per second."""

from __future__ import annotations

import statistics

from bench.harness import Atoll
from bench.load import wrk
from bench.report import Options, Row, main

WORKER = """export default { fetch() {
  let n = 0;
  for (let i = 0; i < 1e7; i++) n += i % 7;
  return new Response(String(n));
} }"""
CONNECTIONS = 8
BAR = 1.7


def run(options: Options) -> list[Row]:
    """Both servers run at the same time and are loaded in turn, so that a slow moment of the machine affects both."""
    rates: dict[str, list[float]] = {"one": [], "spread": []}
    with Atoll({"hot": WORKER}, worker_isolates=1) as one, Atoll({"hot": WORKER}) as spread:
        for turn in range(options.rounds + 1):
            for name, server in (("one", one), ("spread", spread)):
                port, host = server.address("hot")
                wrk(port, host, "/", connections=CONNECTIONS, seconds=2)  # time to spread
                load = wrk(port, host, "/", connections=CONNECTIONS, seconds=options.seconds)
                if turn:
                    rates[name].append(load.rate)
    single, several = statistics.median(rates["one"]), statistics.median(rates["spread"])
    times = several / single
    return [
        Row("a computing worker in one isolate", "req/s", {"atoll": single}),
        Row("the same, spread over all engines", "req/s", {"atoll": several}),
        Row("the same, times one isolate", "x", {"atoll": times}, "1.7 or more on 2 cores", times >= BAR),
    ]


if __name__ == "__main__":
    main(run)
