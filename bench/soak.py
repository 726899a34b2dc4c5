"""Soak: mixed load while engines are killed. Fails on a wrong answer, a hang, a leak or an unexplained failure.

    python -m bench.soak --seconds 600 --every 20

A call inside a killed engine may fail with a clear 502 or 503, or with a broken body if its response had started. Any
other failure, or one at any other time, is an error.
"""

from __future__ import annotations

import argparse
import http.client
import os
import random
import signal
import sys
import threading
import time
from dataclasses import dataclass, field

from bench.harness import Atoll, BenchError, rss_of, script

CLIENTS = 16
WORKERS = 20
GRACE = 2.0  # seconds after a kill in which interrupted calls may still report their failure
HANG = 10.0

MIXED = """
const me = "%s";
let count = 0;
export default {
  async fetch(request) {
    const url = new URL(request.url);
    count += 1;
    if (url.pathname === "/json") return Response.json({ me, token: url.searchParams.get("token") });
    if (url.pathname === "/echo") return new Response(await request.arrayBuffer());
    if (url.pathname === "/later") {
      await new Promise((wake) => setTimeout(wake, 5));
      return new Response(`${me} ${url.search}`);
    }
    return new Response(`${me} ${url.pathname}`);
  },
};
"""


@dataclass
class Findings:
    """The observations of the clients, shared among their threads."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    kills: list[float] = field(default_factory=list)
    answers: int = 0
    excused: int = 0  # failures right after a kill
    problems: list[str] = field(default_factory=list)

    def answered(self) -> None:
        with self.lock:
            self.answers += 1

    def failed(self, began: float, what: str) -> None:
        """A failure is excused if an engine was killed between its start and now, or just before."""
        with self.lock:
            if any(began - GRACE <= kill <= time.monotonic() for kill in self.kills):
                self.excused += 1
            else:
                self.problems.append(f"failed with no engine killed: {what}")

    def wrong(self, what: str) -> None:
        with self.lock:
            self.problems.append(what)


@dataclass(frozen=True)
class Ask:
    """One request and its only correct answer."""

    host: str
    path: str
    wanted: bytes
    body: bytes | None = None


def random_ask(chance: random.Random) -> Ask:
    n, token = chance.randrange(WORKERS), f"{chance.getrandbits(64):x}"
    kind = chance.choice(["plain", "plain", "json", "json", "echo", "later", "stream"])
    host = f"s{n}.localhost"
    if kind == "json":
        return Ask(host, f"/json?token={token}", f'{{"me":"s{n}","token":"{token}"}}'.encode())
    if kind == "echo":
        body = chance.randbytes(chance.choice([0, 10, 10_000, 200_000]))
        return Ask(host, "/echo", body, body)
    if kind == "later":
        return Ask(host, f"/later?{token}", f"s{n} ?{token}".encode())
    if kind == "stream":
        return Ask("stream.localhost", "/", b"." * (1 << 20))
    return Ask(host, f"/{token}", f"s{n} /{token}".encode())


def client(port: int, seed: int, deadline: float, findings: Findings) -> None:
    """Sends one request after the other until the time is up."""
    chance = random.Random(seed)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG)
    while time.monotonic() < deadline:
        ask, began = random_ask(chance), time.monotonic()
        try:
            connection.request("GET" if ask.body is None else "POST", ask.path, ask.body, {"Host": ask.host})
            response = connection.getresponse()
            got = response.read()
        except TimeoutError:
            findings.wrong(f"hung for {HANG:g} s: {ask.host}{ask.path}")
            connection.close()
        except (OSError, http.client.HTTPException) as error:
            findings.failed(began, f"{ask.host}{ask.path}: {error!r}")
            connection.close()
        else:
            if response.status == 200 and got == ask.wanted:
                findings.answered()
            elif response.status in (502, 503):
                findings.failed(began, f"{ask.host}{ask.path}: {response.status} {got[:200]!r}")
            else:
                findings.wrong(f"wrong answer from {ask.host}{ask.path}: {response.status} {got[:200]!r}")
    connection.close()


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def kill_engines(server: Atoll, every: float, deadline: float, findings: Findings) -> None:
    """Kills a random engine at intervals, and none near the end, so that everything can settle."""
    chance = random.Random(0)
    while time.monotonic() + every < deadline:
        time.sleep(every)
        engines = server.engines()
        if not engines:
            findings.wrong("no engine runs")
            continue
        victim = chance.choice(engines)
        findings.kills.append(time.monotonic())
        os.kill(victim, signal.SIGKILL)
        print(f"killed engine {victim}; {findings.answers:,} correct answers so far", file=sys.stderr)


def check_leaks(findings: Findings, before: tuple[int, int], after: tuple[int, int]) -> None:
    """`before` and `after` are the resident bytes and open files of the Python process."""
    if after[0] > before[0] * 1.5 + 20e6:
        findings.problems.append(f"Python grew from {before[0] / 1e6:.0f} to {after[0] / 1e6:.0f} MB")
    if after[1] > before[1] + 5:
        findings.problems.append(f"Python had {before[1]} open files and now has {after[1]}")


def soak(seconds: float, every: float, seed: int = 1) -> Findings:
    findings = Findings()
    workers = {f"s{n}": MIXED % f"s{n}" for n in range(WORKERS)} | {"stream": script("stream")}
    with Atoll(workers) as server:
        front = server.pids()[0]
        warm = time.monotonic() + min(5.0, seconds / 5)
        client(server.port, seed, warm, findings)
        before = rss_of(front), open_files(front)
        engines = len(server.engines())
        deadline = time.monotonic() + seconds
        clients = [
            threading.Thread(target=client, args=(server.port, seed + n + 1, deadline, findings))
            for n in range(CLIENTS)
        ]
        for thread in clients:
            thread.start()
        kill_engines(server, every, deadline, findings)
        for thread in clients:
            thread.join()
        settled = time.monotonic() + 5
        while len(server.engines()) != engines and time.monotonic() < settled:
            time.sleep(0.05)
        if len(server.engines()) != engines:
            findings.problems.append(f"{engines} engines at first, {len(server.engines())} at the end")
        check_leaks(findings, before, (rss_of(front), open_files(front)))
    most = CLIENTS * len(findings.kills)
    if findings.excused > most:
        findings.problems.append(f"{findings.excused} calls failed, but only {most} can have been in a killed engine")
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--every", type=float, default=20, help="seconds between kills  [default: %(default)s]")
    options = parser.parse_args()
    try:
        findings = soak(options.seconds, options.every)
    except BenchError as error:
        sys.exit(f"error: {error}")
    kills, lost = len(findings.kills), findings.excused
    print(f"{findings.answers:,} correct answers, {kills} engines killed, {lost} calls lost with them")
    for problem in findings.problems[:20]:
        print(f"problem: {problem}")
    return 1 if findings.problems else 0


if __name__ == "__main__":
    sys.exit(main())
