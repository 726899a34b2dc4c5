"""A power cut during deploys: after `kill -9` at a random moment every worker is either completely old or new.

Real node, real engines, real disk. Each deploy changes code, variable and route of a worker together. The worker
answers with all three, so half a deploy would show. A deploy that was answered with 200 must be there afterwards.
"""

from __future__ import annotations

import http.client
import random
import signal
import threading
from pathlib import Path

from tests.running import Atoll

WORKERS = 4
DEPLOYS = 200  # in total, over as many power cuts as that takes


def script(number: int) -> str:
    return (
        f"export default {{ fetch(request, env) {{ return new Response(`{number} ${{env.N}} ${{request.url}}`); }} }}"
    )


class Deploying(threading.Thread):
    """Deploys a worker again and again until the node is gone."""

    def __init__(self, atoll: Atoll, name: str, first: int) -> None:
        super().__init__()
        self.atoll, self.worker = atoll, name
        self.confirmed = first  # the last acknowledged deploy
        self.sent = first

    def run(self) -> None:
        for number in range(
            self.confirmed + 1, self.confirmed + 1 + DEPLOYS
        ):  # the power cut comes long before the end
            self.sent = number
            fields = {"script": script(number), "env": {"N": number}, "routes": [f"{self.worker}-{number}.example/*"]}
            try:
                answer = self.atoll.control("PUT", f"/api/workers/{self.worker}", fields)
            except (OSError, http.client.HTTPException):
                return
            assert answer.status == 200, answer.text
            self.confirmed = number


def test_a_worker_is_either_old_or_new_after_a_power_cut(tmp_path: Path) -> None:
    atoll = Atoll(tmp_path, engines=1)
    random_moment = random.Random(0)
    numbers = dict.fromkeys((f"w{i}" for i in range(WORKERS)), 0)
    deploys = 0
    atoll.start()
    try:
        for name in numbers:
            atoll.deploy(name, script(0), env={"N": 0}, routes=[f"{name}-0.example/*"])
        while deploys < DEPLOYS:
            threads = [Deploying(atoll, name, number) for name, number in numbers.items()]
            for thread in threads:
                thread.start()
            threads[0].join(random_moment.uniform(0.1, 1.2))
            atoll.stop(signal.SIGKILL)
            for thread in threads:
                thread.join()
            atoll.start()
            for thread in threads:
                deploys += thread.sent - numbers[thread.worker]
                numbers[thread.worker] = survivor(atoll, thread)
    finally:
        atoll.stop()


def survivor(atoll: Atoll, deploying: Deploying) -> int:
    """The number of the deploy that a worker has, after a check of all its parts."""
    name = deploying.worker
    code, variable, _ = atoll.get(name).text.split(" ")
    assert code == variable, "code of one deploy with the variables of another"
    number = int(code)
    assert number in (deploying.confirmed, deploying.sent), "neither the old version nor the new one"
    for other in range(deploying.confirmed, deploying.sent + 1):
        status = atoll.request("GET", f"{name}-{other}.example").status
        assert status == (200 if other == number else 404), "routes of another deploy"
    worker = atoll.control("GET", f"/api/workers/{name}").json
    assert worker["env"] == {"N": number} and worker["routes"] == [f"{name}-{number}.example/*"]
    return number
