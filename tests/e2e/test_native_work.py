"""Work that C++ does on its own threads: charged to the call, awaited, stopped, and dropped with its worker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tests.running import Atoll

RSA = '{ name: "RSA-PSS", hash: "SHA-256", publicExponent: new Uint8Array([1, 0, 1]), modulusLength: %d }'
GENERATE = f'crypto.subtle.generateKey({RSA}, true, ["sign"])'


def test_a_call_that_waits_only_for_native_work_is_not_stuck(atoll: Atoll) -> None:
    script = f"export default {{ async fetch() {{ await {GENERATE % 2048}; return new Response('made'); }} }};"
    atoll.deploy("native-waits", script, limits={"cpu_ms": 10_000})
    assert atoll.get("native-waits").text == "made"
    assert atoll.logs("native-waits")[0]["cpu_ms"] > 5


def test_work_beyond_the_cpu_limit_is_refused_and_the_worker_survives(atoll: Atoll) -> None:
    script = f"""
        export default {{ async fetch(request) {{
          if (request.url.endsWith("/small")) return new Response("alive");
          try {{ await {GENERATE % 8192}; return new Response("made"); }}
          catch (error) {{ return new Response(`${{error.name}}: ${{error.message}}`); }}
        }} }};"""
    atoll.deploy("native-limit", script)
    began = time.monotonic()
    assert "OperationError: The operation needs more CPU time" in atoll.get("native-limit").text
    assert time.monotonic() - began < 20
    assert atoll.get("native-limit", "/small").text == "alive"


def test_jobs_at_the_same_time_share_the_time_of_their_call(atoll: Atoll) -> None:
    script = f"""
        export default {{ async fetch() {{
          const made = await Promise.allSettled([1, 2, 3, 4, 5, 6].map(() => {GENERATE % 8192}));
          return Response.json(made.map((each) => each.reason?.name ?? each.status));
        }} }};"""
    atoll.deploy("native-shared", script, limits={"cpu_ms": 500, "wall_ms": 60_000})
    for _ in range(5):
        answer = atoll.get("native-shared")
        if answer.status == 503:  # the jobs have used all of it, so nothing is left for the answer
            assert "error 1102" in answer.text
        else:
            assert len(answer.json) == 6 and answer.json.count("OperationError") >= 4
        assert atoll.logs("native-shared")[0]["cpu_ms"] < 650


def test_native_work_counts_toward_the_limit(atoll: Atoll) -> None:
    script = """
        export default { async fetch() {
          const key = await crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]);
          const params = { name: "PBKDF2", hash: "SHA-512", salt: new Uint8Array(8), iterations: 100_000 };
          for (let i = 0; i < 100; i++) await crypto.subtle.deriveBits(params, key, 512);
          return new Response("all done");
        } };"""
    atoll.deploy("native-charged", script, limits={"cpu_ms": 100})
    answer = atoll.get("native-charged")
    assert answer.status == 503 and "all done" not in answer.text
    assert atoll.logs("native-charged")[0]["outcome"] == "exceededCpu"


def test_top_level_code_may_make_keys(atoll: Atoll) -> None:
    script = (
        f"const pair = await {GENERATE % 1024}; export default {{ fetch: () => new Response(pair.publicKey.type) }};"
    )
    atoll.deploy("native-top-level", script)
    assert atoll.get("native-top-level").text == "public"


def test_other_calls_of_the_worker_run_meanwhile(atoll: Atoll) -> None:
    script = f"""
        export default {{ async fetch(request) {{
          if (request.url.endsWith("/quick")) return new Response("quick");
          await Promise.all([1, 2, 3, 4, 5, 6].map(() => {GENERATE % 3072}));
          return new Response("slow");
        }} }};"""
    atoll.deploy("native-meanwhile", script, limits={"cpu_ms": 30_000})
    answers: list[str] = []
    slow = threading.Thread(target=lambda: answers.append(atoll.get("native-meanwhile").text))
    slow.start()
    atoll.wait_until(lambda: atoll.get("native-meanwhile", "/quick").text == "quick")
    still_running = slow.is_alive()
    slow.join()
    assert answers == ["slow"] and still_running


def test_a_worker_can_be_deleted_during_native_work(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)
    script = f"""
        export default {{ async fetch(request) {{
          if (request.url.endsWith("/quick")) return new Response("quick");
          for (let i = 0; i < 40; i++) {GENERATE % 4096};
          for (let i = 0; i < 40; i++) crypto.subtle.digest("SHA-512", new Uint8Array(4_000_000));
          for (;;);
        }} }};"""
    engine = node.engines()[0]
    node.deploy("native-leaves", script)
    for _ in range(3):
        assert node.get("native-leaves").status == 503
        assert node.get("native-leaves", "/quick").text == "quick"
    assert node.engines() == [engine]
