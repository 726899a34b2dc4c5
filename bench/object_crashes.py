"""Object crashes: kills engines and the node with SIGKILL, in turn, while clients add ids to Durable Objects.

    python -m bench.object_crashes --seconds 600

Fails at the first id that was acknowledged and is lost, or that is there twice. tests/objects/test_object_crashes.py is
the short form, with the same checks. Meanwhile other objects go back in time again and again: a restore that was
acknowledged happens, and none is ever seen halfway.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import threading
import time
from pathlib import Path

from tests.objects.test_object_crashes import Load
from tests.objects.worker_under_test import ask, deploy
from tests.running import Atoll

KEYS = 60  # of an object that goes back, each with a page


class TimeTraveller:
    """An object with many keys of one value, which is restored to its earlier value, over and over."""

    def __init__(self, node: Atoll, name: str) -> None:
        self._node = node
        self._name = name
        self.restores = 0
        self.error: Exception | None = None
        self._stop = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop = True
        self._thread.join(120)
        if self.error is not None:
            raise self.error

    def _call(self, method: str, *args: object) -> object:
        """The value; None if the call failed."""
        code = f"return await counter({json.dumps(self._name)}).{method}({', '.join(map(json.dumps, args))});"
        try:
            return ask(self._node, "crashing", code).json.get("value")
        except (OSError, ValueError):
            return None

    def _put(self, value: int) -> None:
        values = {f"key {number}": f"{value} ".ljust(3_000, "x") for number in range(KEYS)}
        code = f"await counter({json.dumps(self._name)}).put({json.dumps(values)}); return 1;"
        while not self._stop:
            try:
                if ask(self._node, "crashing", code).json.get("value") == 1:
                    return
            except (OSError, ValueError):
                time.sleep(0.05)

    def _value(self) -> int | None:
        found = self._call("list")
        if not isinstance(found, list):
            return None
        values = {int(value.split()[0]) for _, value in found}
        assert len(values) == 1 and len(found) == KEYS, f"a restore was seen halfway: {values}, {len(found)} keys"
        return values.pop()

    def _run(self) -> None:
        try:
            generation = 0
            while not self._stop:
                generation += 1
                self._travel(2 * generation)
        except Exception as error:
            self.error = error

    def _travel(self, old: int) -> None:
        self._put(old)
        bookmark = None
        while bookmark is None and not self._stop:
            bookmark = self._call("bookmark")
        self._put(old + 1)
        if not isinstance(self._call("onNextStart", bookmark), str):
            assert self._value() in (None, old, old + 1)
            return
        seen: int | None = None
        until = time.monotonic() + 60
        while seen != old and not self._stop:
            self._call("abort", "again")
            seen = self._value()
            assert seen in (None, old, old + 1, -1), f"{seen} where {old} was wanted"
            assert time.monotonic() < until, f"an acknowledged restore to {old} did not happen: {seen}"
        self.restores += seen == old


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.object_crashes", description="Kill engines and a node.")
    parser.add_argument("--seconds", type=float, default=300, help="Default: 300.")
    until = time.monotonic() + parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        node = Atoll(Path(folder), quarantine_seconds=0)  # else the killed engines are blamed on the worker
        node.start()
        deploy(node, "crashing")
        kills = 0
        travellers = [TimeTraveller(node, f"traveller {number}") for number in range(3)]
        try:
            while time.monotonic() < until:
                with Load(node) as load:
                    for _ in range(5):
                        before = load.count
                        node.wait_until(lambda before=before, load=load: load.count >= before + 50, 120)
                        kills += 1
                        if kills % 3:
                            for pid in node.engines():
                                os.kill(pid, signal.SIGKILL)
                        else:
                            node.stop(signal.SIGKILL)
                            node.start()
                load.check()
                restores = sum(each.restores for each in travellers)
                print(f"{kills} kills, {load.count} acknowledged in this round, {restores} restores", flush=True)
                for each in travellers:
                    if each.error is not None:
                        raise each.error
            for each in travellers:
                each.close()
            print("nothing lost, no restore halfway")
        finally:
            node.stop()


if __name__ == "__main__":
    main()
