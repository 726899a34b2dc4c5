"""Where an attack meets a victim: a node, a quiet tenant with a client beside it, and a hostile tenant with a token.

The rule that is checked: no input makes a quiet tenant wait more than 50 ms because of Python, 100 ms on a busy machine
with two cores, and no bytes are held for anybody beyond a stated bound.

An attack is a generator in `attacks/`. What it does before its `yield` prepares (deploys, opens connections); what it
does after is measured:

    @attack("pongs without a payload", memory_mb=32)
    def empty_pongs(stage: Stage) -> Iterator[None]:
        socket = handshake(stage.node, stage.deploy("listener", LISTENER))
        yield
        socket.sendall(frame(PONG, b"") * 100_000)
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.running import Answer, Atoll, children, command_line, free_port
from tests.stalls import attacks

WAIT_MS = 50.0
BUSY_WAIT_MS = 100.0
FRESH_MB = 64.0  # what a process that starts meanwhile has before it does anything

QUIET = "export default { fetch() { return new Response('quiet'); } };"


@dataclass(frozen=True)
class Stall:
    """What an attack did to the others."""

    wait_ms: float  # the longest time the quiet tenant waited for an answer
    lag_ms: float  # the same of a request that Python answers without an engine: the lag of the event loop
    answered: int  # its answers meanwhile
    memory_mb: float  # what Python's processes grew by at their peak


@dataclass(frozen=True)
class Attack:
    name: str
    run: Callable[[Stage], Iterator[None]]
    memory_mb: float  # what Python may hold for it

    @property
    def is_of_a_client(self) -> bool:
        """Whether it is made of requests alone, so that it can go through a proxy."""
        return self.run.__module__.rpartition(".")[2] in ("deploys", "http_bodies", "http_heads", "websockets")


ATTACKS: list[Attack] = []


def attack(name: str, *, memory_mb: float = 64) -> Callable[[Callable[[Stage], Iterator[None]]], None]:
    def register(run: Callable[[Stage], Iterator[None]]) -> None:
        ATTACKS.append(Attack(name, run, memory_mb))

    return register


def all_attacks() -> list[Attack]:
    for module in pkgutil.iter_modules(attacks.__path__, attacks.__name__ + "."):
        importlib.import_module(module.name)
    return ATTACKS


class Stage:
    """One node with a tenant `quiet` and a hostile one, `mallory`, whose token may do all that a tenant may."""

    def __init__(
        self, folder: Path, command: list[str] | None = None, kind: type[Atoll] = Atoll, **settings: object
    ) -> None:
        # One engine, so that the two tenants always share it. Workers may reach servers of the attack on this machine.
        self.mail_port = free_port()
        usual: dict[str, object] = {
            "engines": 1, "egress_allow": "127.0.0.1", "tenant_connections": 200,
            "email_listen": f"127.0.0.1:{self.mail_port}", "email_routes": "@mallory.example=mallory/inbox",
        }  # fmt: skip
        self.node = kind(folder, **{**usual, **settings})
        if command is not None:
            self.node.command = command
        self.node.start()
        self.nobody = self.node.host("nobody")  # a host without a worker
        token = folder / "data/admin-token"
        self.admin = {"Authorization": f"Bearer {token.read_text().strip()}"} if token.exists() else {}
        for tenant in ("quiet", "mallory"):
            self.operate("POST", "/api/tenants", {"name": tenant})
        made = self.operate(
            "POST", "/api/workers", {"name": "quiet", "script": QUIET}, headers={"X-Atoll-Tenant": "quiet"}
        )
        assert made.status == 201, made.text
        token = {"name": "attack", "scopes": ["admin"]}
        made = self.operate("POST", "/api/tokens", token, headers={"X-Atoll-Tenant": "mallory"})
        self.token: str = made.json["token"]

    def close(self) -> None:
        assert self.node.stop() == 0, self.node.log()

    # --- what attacks use ---

    def operate(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Answer:
        """A request of the operator to the control API."""
        return self.ask(method, path, None if body is None else json.dumps(body), {**self.admin, **(headers or {})})

    def control(self, method: str, path: str, body: object = None) -> Answer:
        """A request of the hostile tenant to the control API. `body` is sent as JSON unless it is text or bytes."""
        text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        return self.ask(method, path, text, {"Authorization": f"Bearer {self.token}"})

    def ask(self, method: str, path: str, body: str | bytes | None, headers: dict[str, str]) -> Answer:
        kind = {} if body is None else {"Content-Type": "application/json"}
        return self.node.request(method, self.node.control_host, path, body, {**kind, **headers})

    def deploy(self, name: str, script: str, **fields: Any) -> str:
        """Deploy a worker of the hostile tenant, and return its name."""
        body = {"name": name, "script": script, **fields}
        answer = self.control("POST", "/api/workers", body)
        if answer.status == 409:  # an earlier round made it
            answer = self.control("PUT", f"/api/workers/{name}", body)
        assert answer.status in (200, 201), f"{answer.text}\n{self.node.log()[-4000:]}"
        return name

    # --- measuring ---

    def measure(self, chosen: Attack) -> Stall:
        """Run an attack beside the quiet tenant's client."""
        steps = chosen.run(self)
        next(steps)
        with Watching(self.node) as watching:
            next(steps, None)
            return watching.end()


class Watching:
    """The quiet tenant's client at work, and the memory of the node meanwhile."""

    def __init__(self, node: Atoll) -> None:
        self.node = node
        self.before: dict[int, float] = {}

    def __enter__(self) -> Watching:
        program = Path(__file__).parent / "victim.py"
        self.client = subprocess.Popen(
            [sys.executable, str(program), str(self.node.port), self.node.host("quiet"), str(self.node.pid)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        for pid in self.python():
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # its peak begins again
            self.before[pid] = peak_mb(pid)
        self.tell("begin")
        return self

    def __exit__(self, *_: object) -> None:
        assert self.client.stdin is not None and self.client.stdout is not None
        self.client.stdin.close()
        self.client.stdout.close()
        self.client.wait(90)

    def tell(self, word: str) -> tuple[float, float, int]:
        assert self.client.stdin is not None and self.client.stdout is not None
        self.client.stdin.write(word + "\n")
        self.client.stdin.flush()
        answer = self.client.stdout.readline().split()
        assert answer, "the quiet tenant's client ended: it was answered wrongly"
        return float(answer[0]), float(answer[1]), int(answer[2])

    def end(self) -> Stall:
        wait_ms, lag_ms, answered = self.tell("end")
        grown = sum(max(peak_mb(pid) - self.before.get(pid, FRESH_MB), 0.0) for pid in self.python())
        return Stall(wait_ms, lag_ms, answered, grown)

    def python(self) -> list[int]:
        """The node's own process and the helpers it started, without the engines."""
        return [self.node.pid, *(pid for pid in children(self.node.pid) if b"main.cjs" not in command_line(pid))]


def peak_mb(pid: int) -> float:
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0
