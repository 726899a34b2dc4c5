"""Kills a node again and again while it stores objects, files and deploys, and compares what it has afterwards.

Several clients change things of their own until the node is gone (SIGKILL at a random moment of one of the changes).
After the restart every place must hold the last acknowledged content, or that of the change without an answer, and
nothing else: compared by content, never by what the node says about it. `tests/e2e/test_crash.py` runs it shortly,
`python -m bench.crash` for as long as you like.

This finds answers that come before the commit, and changes that become visible in parts. It does not cut the power: the
kernel still writes what a killed process has written (tests/e2e/test_disk_faults.py is about disks).
"""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.assets.sites import add_manifest, manifest_of, packed, sha256, upload
from tests.running import Answer, Atoll

BUCKET: Final = "crash"
PART: Final = 5 << 20  # the smallest allowed
KEYS: Final = 6  # per client: few, so that most puts replace an object
SITES: Final = 4
FILES: Final = 12  # of a site
TENANT: Final = {"X-Atoll-Tenant": "crash"}
WORKER = """export default { async fetch(request, env) {
  const key = new URL(request.url).pathname.slice(1);
  if (request.method === "DELETE") await env.R2.delete(key);
  else await env.R2.put(key, request.body);
  return new Response("done");
} };"""
GONE = (OSError, http.client.HTTPException)


def content(number: int, size: int) -> bytes:
    """Different for each number; every other one can be compressed, so assets get further copies."""
    made = random.Random(number).randbytes(size)
    return made if number % 2 else made[: size // 2].hex().encode()


@dataclass
class Report:
    lives: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter)  # changes, by kind
    interrupted: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)  # interrupted, and there after the restart
    problems: list[str] = field(default_factory=list)


class Client:
    """Makes changes one after the other until the node is gone. A place is what a change replaces as a whole."""

    kind = ""

    def __init__(self, node: Atoll, report: Report, seed: int) -> None:
        self.node, self.report = node, report
        self.chance = random.Random(seed)
        self.next = seed * 1_000_000
        self.acknowledged: dict[str, str | None] = {}  # place -> hash of its content; None: it is absent
        self.pending: dict[str, str | None] = {}  # the change without an answer
        self.begun = threading.Event()
        self.took = 0.02  # seconds of the last change
        self.thread = threading.Thread()

    def start(self) -> None:
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            while True:
                self.next += 1
                self.change(self.next)
        except GONE:
            self.report.interrupted[self.kind] += len(self.pending) > 0
        except AssertionError as error:
            self.report.problems.append(f"{self.kind}: {error}")

    def change(self, number: int) -> None:
        raise NotImplementedError

    def check(self) -> None:
        """After a restart: read every place and compare it."""
        raise NotImplementedError

    def send(self, places: Mapping[str, str | None], act: Callable[[], Answer]) -> None:
        """Make a change, which is acknowledged by its answer."""
        self.pending = dict(places)
        self.begun.set()
        began = time.monotonic()
        answer = act()
        self.took = time.monotonic() - began
        assert answer.status in (200, 201, 204), f"{answer.status} {answer.body[:300]!r}"
        self.acknowledged |= self.pending
        self.pending = {}
        self.report.acknowledged[self.kind] += 1

    def compare(self, place: str, found: str | None) -> None:
        allowed = {self.acknowledged.get(place), self.pending.get(place, self.acknowledged.get(place))}
        if found not in allowed:
            shown = [each[:8] if each else "nothing" for each in allowed]
            what = f"{found[:8]}" if found else "nothing"
            self.report.problems.append(f"{self.kind}: {place} holds {what}, but should hold {' or '.join(shown)}")
        elif place in self.pending and found == self.pending[place]:
            self.report.kept[self.kind] += 1
        self.acknowledged[place] = found


class Objects(Client):
    """A client of the bucket. Its keys begin with its kind."""

    def check(self) -> None:
        answer = self.node.control("GET", f"/api/r2/{BUCKET}/objects?prefix={self.kind}/&limit=1000").json
        listed = {each["key"]: each["size"] for each in answer["objects"]}
        for key in {*listed, *self.acknowledged, *self.pending}:
            got = self.node.control("GET", f"/api/r2/{BUCKET}/objects/{key}")
            if (got.status == 200) != (key in listed) or (key in listed and len(got.body) != listed[key]):
                size = listed.get(key)
                self.report.problems.append(
                    f"{self.kind}: {key} is listed with {size} bytes, but read: {got.status}, {len(got.body)} bytes"
                )
            self.compare(key, sha256(got.body) if got.status == 200 else None)
        self.pending = {}

    def key(self) -> str:
        return f"{self.kind}/{self.chance.randrange(KEYS)}"


class Putting(Objects):
    """Puts and deletes objects, through the control API."""

    kind = "put"

    def change(self, number: int) -> None:
        key = self.key()
        if self.acknowledged.get(key) and self.chance.random() < 0.1:
            self.send({key: None}, lambda: self.remove(key))
            return
        data = content(number, self.chance.choice([100, 20_000, 300_000, 2_000_000]))
        self.send({key: sha256(data)}, lambda: self.put(key, data))

    def put(self, key: str, data: bytes) -> Answer:
        return self.node.request("PUT", self.node.control_host, f"/api/r2/{BUCKET}/objects/{key}", data)

    def remove(self, key: str) -> Answer:
        return self.node.control("DELETE", f"/api/r2/{BUCKET}/objects/{key}")


class PuttingByWorker(Putting):
    """The same through the binding of a worker."""

    kind = "worker"

    def put(self, key: str, data: bytes) -> Answer:
        return self.node.request("PUT", self.node.host("crash-store"), f"/{key}", data)

    def remove(self, key: str) -> Answer:
        return self.node.request("DELETE", self.node.host("crash-store"), f"/{key}")


class Completing(Objects):
    """Makes objects of parts. Only the completion changes the object."""

    kind = "multipart"

    def change(self, number: int) -> None:
        key = self.key()
        pieces = [content(number, PART), content(number + 1, self.chance.randrange(1, 400_000))]
        if len(pieces[0]) < PART:
            pieces[0] = pieces[0].ljust(PART, b"=")
        begun = self.node.control("POST", f"/api/r2/{BUCKET}/uploads/{key}")
        assert begun.status == 201, begun.text
        upload_id, parts = begun.json["upload_id"], []
        for at, piece in enumerate(pieces, 1):
            path = f"/api/r2/{BUCKET}/uploads/{key}?upload_id={upload_id}&part={at}"
            answer = self.node.request("PUT", self.node.control_host, path, piece)
            assert answer.status == 200, answer.text
            parts.append({"part": at, "etag": answer.json["etag"]})
        body = {"upload_id": upload_id, "parts": parts}
        whole = hashlib.sha256(b"".join(pieces)).hexdigest()
        self.send({key: whole}, lambda: self.node.control("POST", f"/api/r2/{BUCKET}/complete/{key}", body))


class Uploading(Client):
    """Uploads files of assets that no deploy names yet. The place of a file is its hash.

    It is a tenant of its own, because a tenant has at most two manifests that no deploy names."""

    kind = "files"

    def __init__(self, node: Atoll, report: Report, seed: int) -> None:
        super().__init__(node, report, seed)
        self.contents: dict[str, bytes] = {}

    def change(self, number: int) -> None:
        found = [content(number * 10 + at, self.chance.choice([50, 5_000, 200_000])) for at in range(5)]
        self.contents |= {sha256(each): each for each in found}
        self.name_files(sha256(each) for each in found)
        places = {sha256(each): sha256(each) for each in found}
        self.send(places, lambda: upload(self.node, packed(found), **TENANT))

    def check(self) -> None:
        """Deploy a site of all files that the node has, and read it."""
        missing = self.name_files(self.contents)["missing"]
        there = [name for name in self.contents if name not in missing]
        if there:
            body = {"assets": {"manifest": self.name_files(there)["manifest"]}}
            answer = self.ask("PUT", "/api/workers/crash-files", body)
            if answer.status == 404:
                answer = self.ask("POST", "/api/workers", body | {"name": "crash-files"})
            assert answer.status in (200, 201), answer.text
        for name in self.contents:
            got = self.node.get("crash-files", f"/{name}.txt") if name not in missing else None
            self.compare(name, sha256(got.body) if got is not None else None)
        self.contents, self.acknowledged, self.pending = {}, {}, {}  # the next life has files of its own

    def name_files(self, names: Iterable[str]) -> Any:
        """Add a manifest of these files."""
        answer = self.ask("POST", "/api/assets/manifests", manifest_of({f"/{n}.txt": self.contents[n] for n in names}))
        assert answer.status == 200, answer.text
        return answer.json

    def ask(self, method: str, path: str, body: object) -> Answer:
        headers = {"Content-Type": "application/json", **TENANT}
        return self.node.request(method, self.node.control_host, path, json.dumps(body), headers)


class Deploying(Client):
    """Deploys a site with a worker. Code and variable are the number of the deploy, which chooses one of a few sites.

    Two deploys in a row differ in every file. The files are uploaded once, so that a change is the deploy alone."""

    kind = "deploys"

    def __init__(self, node: Atoll, report: Report, seed: int) -> None:
        super().__init__(node, report, seed)
        self.manifests: dict[int, str] = {}

    def files(self, number: int) -> dict[str, bytes]:
        names = [f"/{at}.txt" for at in range(FILES)] + [f"/only-{number % SITES}.txt"]
        first = number % SITES * FILES * 2
        return {name: content(first + at, 9_000) for at, name in enumerate(names)}

    def manifest(self, number: int) -> str:
        if number % SITES not in self.manifests:
            files = self.files(number)
            found = add_manifest(self.node, files)
            missing = {sha256(each): each for each in files.values() if sha256(each) in found["missing"]}
            if missing:
                answer = upload(self.node, packed(missing.values()))
                assert answer.status == 200, answer.text
            self.manifests[number % SITES] = found["manifest"]
        return self.manifests[number % SITES]

    def change(self, number: int) -> None:
        manifest = self.manifest(number)
        body = {"name": "crash-site", "script": site(number), "env": {"N": number}, "assets": {"manifest": manifest}}
        is_new = self.acknowledged.get("site") is None
        method, path = ("POST", "/api/workers") if is_new else ("PUT", "/api/workers/crash-site")
        self.send({"site": str(number)}, lambda: self.node.control(method, path, body))

    def check(self) -> None:
        got = self.node.get("crash-site", "/code")
        found = None if got.status == 404 else got.text.partition(" ")[0]
        self.compare("site", found)
        if self.pending and found != self.pending["site"]:
            # A manifest that no version names may be dropped: ask for it again
            self.manifests.pop(int(str(self.pending["site"])) % SITES, None)
        if found is not None:
            if got.text != f"{found} {found}":
                self.report.problems.append(f"deploys: code and variable of different deploys: {got.text}")
            for name, wanted in self.files(int(found)).items():
                if self.node.get("crash-site", name).body != wanted:
                    self.report.problems.append(f"deploys: {name} is not the file of deploy {found}")
            for other in {*range(SITES)} - {int(found) % SITES}:
                if self.node.get("crash-site", f"/only-{other}.txt").text != got.text:  # the worker answers
                    self.report.problems.append(f"deploys: a file of another deploy is part of deploy {found}")
        self.pending = {}


def site(number: int) -> str:
    return f"export default {{ fetch(request, env) {{ return new Response(`{number} ${{env.N}}`); }} }}"


KINDS: tuple[type[Client], ...] = (Putting, PuttingByWorker, Completing, Uploading, Deploying)


def crash(node: Atoll, seconds: float, seed: int = 1, tell: Callable[[Report], None] = lambda report: None) -> Report:
    """Kill a running node until the time is over or there is a problem. It runs afterwards."""
    report, chance = Report(), random.Random(seed)
    node.deploy("crash-store", WORKER, bindings=[{"type": "r2", "name": "R2", "bucket": BUCKET}])
    node.control("POST", "/api/tenants", {"name": TENANT["X-Atoll-Tenant"]})
    clients = [kind(node, report, number) for number, kind in enumerate(KINDS, 1)]
    began = time.monotonic()
    while not report.problems:
        # On a busy machine it takes longer until every client has changed something
        is_enough = len(report.acknowledged) == len(KINDS) or time.monotonic() > began + 4 * seconds
        if is_enough and time.monotonic() > began + seconds:
            break
        for client in clients:
            client.start()
        time.sleep(chance.uniform(0.0, 0.8))  # makes load; then the kill is aimed at one change
        aimed = chance.choice(clients)
        aimed.begun.clear()
        aimed.begun.wait(5)
        time.sleep(aimed.took * chance.uniform(0.2, 1.2))  # most at its end, where it becomes visible
        node.stop(signal.SIGKILL)
        for client in clients:
            client.thread.join()
        node.start()
        for client in clients:
            client.check()
        report.lives += 1
        tell(report)
    return report
