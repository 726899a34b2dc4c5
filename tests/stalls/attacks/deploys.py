"""Deploys of a tenant with a token: large, odd, many, unfinished, and beside much that is deployed already."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tests.assets.sites import manifest_of, packed, sha256
from tests.running import Answer
from tests.stalls.stage import Stage, attack

HELLO = "export default { fetch() { return new Response('hello'); } };"
MB = 1 << 20
JOB_MB = 512  # what a job process may use beside the node itself


def refused(answer: Answer, *statuses: int) -> None:
    assert answer.status in (statuses or (400, 413, 422)), answer.text[:500]


def fields(**given: object) -> dict[str, object]:
    return {"name": "attack", "script": HELLO, **given}


@attack("a deploy with 700,000 variables", memory_mb=JOB_MB)
def many_variables(stage: Stage) -> Iterator[None]:
    body = json.dumps(fields(env={f"V{i}": i for i in range(700_000)}))
    yield
    refused(stage.control("POST", "/api/workers", body))


@attack("a deploy with 600,000 secrets", memory_mb=JOB_MB)
def many_secrets(stage: Stage) -> Iterator[None]:
    body = json.dumps(fields(secrets={f"V{i}": "x" for i in range(600_000)}))
    yield
    refused(stage.control("POST", "/api/workers", body))


@attack("a deploy with a million bindings", memory_mb=JOB_MB)
def many_bindings(stage: Stage) -> Iterator[None]:
    body = json.dumps(fields(bindings=[{}] * 1_000_000))
    yield
    refused(stage.control("POST", "/api/workers", body))


@attack("a deploy with a million routes", memory_mb=JOB_MB)
def many_routes(stage: Stage) -> Iterator[None]:
    body = json.dumps(fields(routes=["a.example/*"] * 1_000_000))
    yield
    refused(stage.control("POST", "/api/workers", body))


@attack("a deploy just below the size of a small one", memory_mb=64)
def crowded_and_small(stage: Stage) -> Iterator[None]:
    body = '{"name":"attack","script":"x","bindings":[' + ",".join(["{}"] * 340_000) + "]}"
    assert len(body) < MB
    yield
    for _ in range(5):
        refused(stage.control("POST", "/api/workers", body))


@attack("a deploy with one variable of a million lists", memory_mb=JOB_MB)
def one_large_variable(stage: Stage) -> Iterator[None]:
    body = json.dumps(fields(env={"A": [[]] * 1_000_000}))
    yield
    refused(stage.control("POST", "/api/workers", body))


@attack("a deploy of 10 MB in one script", memory_mb=JOB_MB)
def large_script(stage: Stage) -> Iterator[None]:
    script = HELLO + "//" + "é\\n" * (10 * MB // 5)
    body = json.dumps(fields(name="large", script=script[: 10 * MB // 2]))
    yield
    answer = stage.control("POST", "/api/workers", body)
    if answer.status == 409:
        answer = stage.control("PUT", "/api/workers/large", body)
    assert answer.status in (200, 201), answer.text[:500]


@attack("a deploy of 10 MB in base64, with source maps", memory_mb=JOB_MB)
def large_modules(stage: Stage) -> Iterator[None]:
    code = (HELLO + "\n" + "function f() { return 1; }\n" * 300_000).encode()[: 8 * MB]
    body = {
        "name": "modules",
        "main": "main.js",
        "modules": {
            "main.js": {"base64": base64.b64encode(HELLO.encode()).decode()},
            "rest.txt": {"base64": base64.b64encode(code).decode()},
        },
        "source_maps": {"main.js": json.dumps({"version": 3, "mappings": "AAAA;" * 1_000_000})},
    }
    text = json.dumps(body)
    yield
    answer = stage.control("POST", "/api/workers", text)
    if answer.status == 409:
        answer = stage.control("PUT", "/api/workers/modules", text)
    assert answer.status in (200, 201), answer.text[:500]


@attack("a deploy of 10,000 modules", memory_mb=JOB_MB)
def many_modules(stage: Stage) -> Iterator[None]:
    modules = {f"m{i}.js": "export default 1;" for i in range(10_000)}
    body = json.dumps({"name": "attack", "main": "m0.js", "modules": modules})
    yield
    refused(stage.control("POST", "/api/workers", body))


@attack("a deploy of 1,000 modules", memory_mb=JOB_MB)
def as_many_modules_as_allowed(stage: Stage) -> Iterator[None]:
    modules = {"main.js": HELLO} | {f"m{i}.txt": "x" * 10_000 for i in range(999)}
    body = json.dumps({"name": "thousand", "main": "main.js", "modules": modules})
    yield
    for method, path in (("POST", "/api/workers"), ("PUT", "/api/workers/thousand")):
        refused(stage.control(method, path, body), 200, 201, 409)
    refused(stage.control("GET", "/api/workers/thousand/versions/1"), 200)


@attack("a deploy with deep nesting", memory_mb=JOB_MB)
def deep(stage: Stage) -> Iterator[None]:
    bodies = ["[" * (20 * MB), '{"name":"attack","script":"x","env":{"A":' + '{"a":' * 500_000]
    yield
    for body in bodies:
        refused(stage.control("POST", "/api/workers", body))


@attack("a deploy with a number of 20 MB", memory_mb=JOB_MB)
def long_number(stage: Stage) -> Iterator[None]:
    bodies = [json.dumps(fields(env={"A": 0})).replace("0}", digits + "}") for digits in ("9" * 20 * MB, "9" * 60_000)]
    yield
    for body in bodies:
        refused(stage.control("POST", "/api/workers", body))


@attack("a deploy as a form of odd parts", memory_mb=JOB_MB)
def odd_forms(stage: Stage) -> Iterator[None]:
    head = b'--b\r\nContent-Disposition: form-data; name="a.txt"; filename="a.txt"\r\n'
    bodies = [
        head + b"X: " + b"x" * (20 * MB),  # one endless header
        head + b"X: y\r\n" * (3 * MB),
        (head + b"\r\n\r\n") * 250_000,
        b"\r\n" * (10 * MB),
        b"--b" * (7 * MB),
    ]
    yield
    for body in bodies:
        headers = {"Authorization": f"Bearer {stage.token}", "Content-Type": "multipart/form-data; boundary=b"}
        refused(stage.ask("POST", "/api/workers", body, headers))


@attack("a form of 10 MB", memory_mb=JOB_MB)
def large_form(stage: Stage) -> Iterator[None]:
    parts = [
        b'--b\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n{"name":"form","main_module":"main.js"}\r\n',
        b'--b\r\nContent-Disposition: form-data; name="main.js"; filename="main.js"\r\n\r\n' + HELLO.encode() + b"\r\n",
        b'--b\r\nContent-Disposition: form-data; name="a.bin"; filename="a.bin"\r\n\r\n'
        + b"\r\n-" * (3 * MB)
        + b"\r\n",
        b"--b--\r\n",
    ]
    headers = {"Authorization": f"Bearer {stage.token}", "Content-Type": "multipart/form-data; boundary=b"}
    yield
    answer = stage.ask("POST", "/api/workers", b"".join(parts), headers)
    if answer.status == 409:
        answer = stage.ask("PUT", "/api/workers/form", b"".join(parts), headers)
    assert answer.status in (200, 201), answer.text[:500]


@attack("deploys beside 20,000 routes", memory_mb=JOB_MB)
def beside_many_routes(stage: Stage) -> Iterator[None]:
    if stage.control("GET", "/api/workers/routes199").status == 404:
        for i in range(200):
            stage.deploy(f"routes{i}", HELLO, routes=[f"h{j}.w{i}.example.com/{j}/*" for j in range(100)])
    wild = [f"*.x{j}.example.com/*" for j in range(100)]
    yield
    for i in range(3):
        stage.deploy(f"wild{i}", HELLO, routes=[route.replace("x", f"x{i}-") for route in wild])
        stage.deploy("routes7", HELLO, routes=[f"h{j}.w7.example.com/{j}/*" for j in range(100)])
    stage.control("GET", "/api/routes")


@attack("what is done with a version of 10 MB", memory_mb=JOB_MB)
def with_a_large_version(stage: Stage) -> Iterator[None]:
    code = HELLO + "//" + "x" * (9 * MB)
    body = json.dumps(fields(name="heavy", script=code))
    if stage.control("POST", "/api/workers", body).status == 409:
        stage.control("PUT", "/api/workers/heavy", body)
    stage.control("PUT", "/api/workers/heavy", body)
    yield
    for method, path, sent in (
        ("GET", "/api/workers/heavy/versions/1", None),
        ("GET", "/api/workers/heavy/versions", None),
        ("PUT", "/api/workers/heavy", {"message": "x", "env": {"A": 1}}),
        ("PUT", "/api/workers/heavy/secrets/S", {"value": "x"}),
        ("POST", "/api/workers/heavy/rollback", {"force": True}),
        ("POST", "/api/workers/heavy/versions/1/activate?force=true", {}),
    ):
        answer = stage.control(method, path, sent)
        assert answer.status == 200, answer.text[:500]


@attack("a deploy with many crons and queues", memory_mb=JOB_MB)
def many_triggers(stage: Stage) -> Iterator[None]:
    for i in range(100):
        refused(stage.control("POST", "/api/queues", {"name": f"q{i}"}), 201, 409)
    code = "export default { fetch() {}, queue() {}, scheduled() {} };"
    crons = [f"{i % 60} {i % 24} 29 2 *" for i in range(100)]
    consumers = [{"queue": f"q{i}"} for i in range(100)]
    yield
    for _ in range(3):
        stage.deploy("events", code, crons=crons, queue_consumers=consumers)


def begun(stage: Stage, path: str, size: int, sent: int) -> socket.socket:
    """A request whose body does not come to its end."""
    client = stage.node.connect()
    client.settimeout(2)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {stage.node.control_host}\r\nAuthorization: Bearer {stage.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    )
    try:
        client.sendall(head.encode())
        client.sendall(b"[" + b" " * (sent - 1))
    except OSError:
        pass  # refused, or held
    return client


@attack("unfinished bodies of 94 MB", memory_mb=64)
def unfinished(stage: Stage) -> Iterator[None]:
    refused(stage.control("POST", "/api/kv", {"name": "bulk"}), 201, 409)
    yield
    with ThreadPoolExecutor(12) as threads:
        clients = list(threads.map(lambda _: begun(stage, "/api/kv/bulk/bulk", 95 * MB, 94 * MB), range(12)))
    for client in clients:
        client.close()


@attack("unfinished deploys", memory_mb=96)
def unfinished_deploys(stage: Stage) -> Iterator[None]:
    yield
    with ThreadPoolExecutor(20) as threads:
        clients = list(threads.map(lambda _: begun(stage, "/api/workers", 20 * MB, 19 * MB), range(40)))
    for client in clients:
        client.close()


@attack("unfinished small bodies", memory_mb=300)
def unfinished_small(stage: Stage) -> Iterator[None]:
    yield
    with ThreadPoolExecutor(20) as threads:
        clients = list(threads.map(lambda _: begun(stage, "/api/queues", MB - 100, MB - 200), range(500)))
    for client in clients:
        client.close()


@attack("requests to a host with 20,000 routes", memory_mb=64)
def a_host_of_many_routes(stage: Stage) -> Iterator[None]:
    if stage.control("GET", "/api/workers/paths199").status == 404:
        for i in range(200):
            stage.deploy(f"paths{i}", HELLO, routes=[f"paths.example.com/{i}/{j}/*" for j in range(100)])
    request = b"GET /nothing HTTP/1.1\r\nHost: paths.example.com\r\n\r\n"
    yield
    for i in range(3):
        stage.deploy(f"paths{i}", HELLO, routes=[f"paths.example.com/{i}/{j}/*" for j in range(100)])
        with stage.node.connect() as client:
            client.sendall(request * 300)
            seen = b""
            while seen.count(b"HTTP/1.1 ") < 300 and (data := client.recv(1 << 20)):
                seen += data


@attack("hints for names that are nearly right", memory_mb=64)
def near_misses(stage: Stage) -> Iterator[None]:
    modules = {"a" * 150 + f"{i:03}.js": "" for i in range(999)}
    bodies = [
        {"name": "attack", "main": "a" * 150 + "xxx.js", "modules": modules},
        fields(**{"a" * 60_000: 1}),
        fields(switches={"allow_evil" * 5_000: True}),
        fields(bindings=[{"type": "kv" * 20_000, "name": "A"}]),
    ]
    yield
    for body in bodies:
        refused(stage.control("POST", "/api/workers", body))


@attack("tokens, secrets and tenants of odd bodies", memory_mb=64)
def odd_small_bodies(stage: Stage) -> Iterator[None]:
    lists = "[" + ",".join(["[]"] * 85_000) + "]"
    yield
    for method, path in (
        ("POST", "/api/tokens"),
        ("PUT", "/api/workers/quiet/secrets/S"),
        ("POST", "/api/queues"),
        ("POST", "/api/kv"),
        ("POST", "/api/workers/quiet/rollback"),
    ):
        for body in (lists, '{"name": ' + lists + "}", '{"value": ' + lists + "}", '{"scopes": ' + lists + "}"):
            refused(stage.control(method, path, body), 400, 404, 413, 422)


@attack("a deploy of 20,000 files", memory_mb=JOB_MB)
def many_files(stage: Stage) -> Iterator[None]:
    def deploy(kind: str) -> None:
        contents = {f"/{kind}/folder-{i % 100}/file-{i}.txt": f"{kind} {i}".encode() for i in range(20_000)}
        answer = stage.control("POST", "/api/assets/manifests", json.dumps(manifest_of(contents)))
        assert answer.status == 200, answer.text[:500]
        missing, headers = set(answer.json["missing"]), {"Authorization": f"Bearer {stage.token}"}
        files = [content for content in contents.values() if sha256(content) in missing]
        for start in range(0, len(files), 2_000):
            stored = stage.ask("PUT", "/api/assets/files", packed(files[start : start + 2_000]), headers)
            assert stored.status == 200, stored.text[:500]
        body = {"assets": {"manifest": answer.json["manifest"]}}
        found = stage.control("PUT", "/api/workers/files", body)
        if found.status == 404:
            found = stage.control("POST", "/api/workers", {"name": "files", **body})
        assert found.status in (200, 201), found.text[:500]

    deploy("old")
    yield
    deploy("new")  # the files of the version before are dropped from memory
    stage.control("PUT", "/api/workers/files", {"message": "the same files"})
    refused(stage.control("POST", "/api/workers/files/rollback", {}), 200)
