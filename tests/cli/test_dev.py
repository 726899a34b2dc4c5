"""`atoll dev` from a developer's view: saves, mistakes, crashes, and the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from tests.cli.dev_session import ATOLL, Dev
from tests.running import alive, children, command_line

CONFIG = 'name = "app"\nmain = "index.ts"\ncompatibility_date = "2026-01-01"\n'
Start = Callable[..., Dev]


def says(text: str) -> str:
    return f'export default {{ fetch(): Response {{ return new Response("{text}") }} }}'


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start(**files)` writes a project and runs it; the fixture stops it."""
    sessions: list[Dev] = []

    def run(*words: str, program: Sequence[str] = (ATOLL,), **files: str) -> Dev:
        folder = tmp_path / "app"
        folder.mkdir(exist_ok=True)
        for name, text in {"atoll.toml": CONFIG, "index.ts": says("one"), **files}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        sessions.append(Dev(folder, *words, program=program))
        return sessions[-1]

    yield run
    for session in sessions:
        session.stop()


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for each in found:
        found += children(each)
    return found


def test_a_save_is_live_and_every_call_is_a_line(start: Start) -> None:
    dev = start()
    assert dev.get("x?y=1") == (200, "one")
    call = dev.wait_for("call")
    assert (call["method"], call["path"], call["status"], call["outcome"]) == ("GET", "/x?y=1", 200, "ok")
    assert call["wall_ms"] >= 0 and call["cpu_ms"] >= 0 and call["cold"] in (True, False)
    dev.save("index.ts", says("two"))
    dev.wait_for("reloaded")
    assert dev.get() == (200, "two")
    assert dev.get(host="any.example") == (200, "two")


def test_a_worker_may_see_a_live_clock_to_be_measured(start: Start) -> None:
    source = """export default { fetch(): Response {
      const before = performance.now();
      for (let i = 0; i < 3e6; i++);
      return new Response(String(performance.now() > before));
    } }"""
    dev = start(**{"atoll.toml": CONFIG + "[switches]\nallow_live_clock = true\n", "index.ts": source})
    assert dev.get() == (200, "true")
    dev.save("atoll.toml", CONFIG)
    dev.wait_for("reloaded")
    assert dev.get() == (200, "false")


def test_console_lines_are_shown_with_their_call(start: Start) -> None:
    dev = start(**{"index.ts": 'export default { fetch() { console.warn("a", { b: [1] }); return new Response() } }'})
    dev.get()
    assert dev.wait_for("call")["logs"] == [{"level": "warn", "message": "a { b: [ 1 ] }"}]


def test_console_lines_are_shown_at_once_and_not_when_the_call_ends(start: Start) -> None:
    """For a stream that never ends, and for waitUntil() after the answer."""
    worker = """
    export default {
      fetch(request: Request, env: unknown, ctx: any) {
        if (request.url.endsWith("/later")) {
          ctx.waitUntil(scheduler.wait(50).then(() => { console.log("later"); return new Promise(() => {}); }));
          return new Response("answered");
        }
        let n = 0;
        const body = new ReadableStream({
          async pull(controller) {
            console.log("piece", ++n);
            controller.enqueue(new TextEncoder().encode(`${n}`));
            await scheduler.wait(20);
          },
        });
        return new Response(body);
      },
    };
    """
    dev = start(**{"index.ts": worker})
    with urllib.request.urlopen(dev.url + "stream", timeout=60) as response:
        for n in (1, 2, 3):
            said = dev.wait_for("log")
            assert (said["message"], said["level"], said["path"]) == (f"piece {n}", "log", "/stream")
            assert response.read(1) == str(n).encode()
        assert not [event for event in dev.seen if event["event"] == "call"]
    assert dev.get("later") == (200, "answered")
    while dev.wait_for("log")["message"] != "later":
        pass
    assert not [event for event in dev.seen if event["event"] == "call" and event["path"] == "/later"]


async def test_console_lines_of_a_websocket_are_shown_while_it_is_open(start: Start) -> None:
    worker = """
    export default {
      fetch() {
        const [client, server] = Object.values(new WebSocketPair());
        server.accept();
        server.addEventListener("message", ({ data }) => { console.info("got", data); server.send(data); });
        return new Response(null, { status: 101, webSocket: client });
      },
    };
    """
    dev = await asyncio.to_thread(start, **{"index.ts": worker})
    async with connect(dev.url.replace("http", "ws"), proxy=None) as client:
        for word in ("one", "two"):
            await client.send(word)
            assert await client.recv() == word
            said = await asyncio.to_thread(dev.wait_for, "log", "call")
            assert (said["event"], said["message"]) == ("log", f"got {word}")


async def test_a_websocket_that_floods_the_console_is_shown_again_later(start: Start) -> None:
    """The limit is per second: a socket may live for days, and so do its lines."""
    worker = """
    export default {
      fetch() {
        const [client, server] = Object.values(new WebSocketPair());
        server.accept();
        server.addEventListener("message", ({ data }) => {
          if (data === "flood") for (let i = 0; i < 100; i++) console.log("x".repeat(10_000));
          else console.log("got", data);
          server.send(data);
        });
        return new Response(null, { status: 101, webSocket: client });
      },
    };
    """
    dev = await asyncio.to_thread(start, **{"index.ts": worker})

    def heard() -> list[str]:
        return [event["message"] for event in dev.seen if event["event"] == "log"]

    async with connect(dev.url.replace("http", "ws"), proxy=None) as client:
        for round in range(2):
            await client.send("flood")
            assert await client.recv() == "flood"
            while not any("dropped" in line for line in heard()):
                await asyncio.to_thread(dev.wait_for, "log")
            assert heard().count("x" * 10_000) < 100
            while f"got {round}" not in heard():
                await client.send(str(round))
                assert await client.recv() == str(round)
                await asyncio.sleep(0.05)
                dev.take_events()
            dev.seen.clear()


def test_web_pages_cannot_use_the_dev_tools(start: Start) -> None:
    worker = "export default { fetch: () => new Response('one'), scheduled: (c) => console.log('cron', c.cron) }"
    dev = start(**{"index.ts": worker})
    tool = "cdn-cgi/handler/scheduled"
    assert dev.get(tool, host="evil.example")[0] == 404  # as in DNS rebinding
    request = urllib.request.Request(dev.url + tool, headers={"Sec-Fetch-Site": "cross-site"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    with refused.value:
        assert refused.value.code == 403
    for host in ("localhost", f"127.0.0.1:{dev.port}"):
        assert dev.get(tool, host=host)[0] == 200
    assert dev.get("page", host="evil.example") == (200, "one")  # the project itself answers under every name


def test_a_flood_of_lines_is_cut_and_counted(start: Start) -> None:
    flood = 'for (let i = 0; i < 5000; i++) console.log("x".repeat(20));'
    worker = f"export default {{ fetch() {{ {flood} return new Response() }} }}"
    dev = start(**{"index.ts": worker})
    dev.get()
    assert dev.wait_for("skipped")["count"] > 0
    assert len([event for event in dev.seen if event["event"] == "log"]) < 5000


def test_a_stack_in_the_console_has_source_positions(start: Start) -> None:
    source = "enum Kind { A }\n\nexport default {\n  fetch() {\n    console.error(new Error(`no ${Kind.A}`));\n"
    dev = start(**{"index.ts": source + "    return new Response();\n  },\n};\n"})
    dev.get()
    assert "index.ts:5:19" in dev.wait_for("call")["logs"][0]["message"]


def test_a_failed_build_is_shown_until_it_is_fixed(start: Start) -> None:
    dev = start()
    dev.save("index.ts", "export default {\n  fetch( { return 1 }\n}")
    failed = dev.wait_for("build_failed")
    assert "index.ts:" in failed["message"] and "> 2 |" in failed["message"]
    status, page = dev.get("any/path", accept="text/html")
    assert status == 500 and "The project does not build" in page and "&gt; 2 |" in page
    assert dev.get(accept="application/json")[1].startswith('{"error"')
    dev.save("index.ts", says("fixed"))
    dev.wait_for("reloaded")
    assert dev.get() == (200, "fixed")


def test_an_error_in_top_level_code_changes_only_the_page(start: Start) -> None:
    dev = start()
    dev.save("index.ts", "const nothing: any = null;\nnothing.x;\nexport default { fetch() {} }")
    failed = dev.wait_for("deploy_failed")
    assert "Cannot read properties of null" in failed["message"] and "> 2 | nothing.x;" in failed["message"]
    assert dev.get()[0] == 500
    dev.save("index.ts", says("again"))
    dev.wait_for("reloaded")
    assert dev.get() == (200, "again")


def test_an_exception_of_a_bundle_has_its_source_position(start: Start) -> None:
    source = 'import { fail } from "./lib";\nenum Kind { A }\n'
    source += "export default {\n  fetch(): Response {\n    return fail(Kind.A);\n  },\n};\n"
    library = "// a comment\nexport function fail(kind: number): never {\n  throw new RangeError(`no ${kind}`);\n}\n"
    dev = start(**{"index.ts": source, "lib.ts": library})
    status, page = dev.get(accept="text/html")
    assert status == 500 and "lib.ts:3:9" in page and "EventSource" in page
    thrown = dev.wait_for("call")["exception"]
    assert thrown["message"] == "no 0"
    assert "  > 3 |   throw new RangeError(`no ${kind}`);" in thrown["stack"]
    assert "index.ts:5:12" in thrown["stack"]


def test_dev_survives_a_deleted_file_and_a_broken_config(start: Start) -> None:
    dev = start()
    (dev.folder / "index.ts").unlink()
    assert "is index.ts, but there is no such file" in dev.wait_for("build_failed")["message"]
    dev.save("index.ts", says("back"))
    dev.wait_for("reloaded")
    dev.save("atoll.toml", "name = ")
    assert "is not TOML" in dev.wait_for("build_failed")["message"]
    dev.save("atoll.toml", CONFIG.replace("index.ts", "other.ts"))
    assert "there is no such file" in dev.wait_for("build_failed")["message"]
    dev.save("other.ts", says("other"))
    dev.save("atoll.toml", CONFIG.replace("index.ts", "other.ts") + "# again\n")
    dev.wait_for("reloaded")
    assert dev.get() == (200, "other")


def test_unsupported_config_fields_are_reported(start: Start) -> None:
    dev = start()
    dev.save("atoll.toml", CONFIG + 'routez = 1\n[browser]\nbinding = "BROWSER"\n')
    told = [dev.wait_for("finding")["message"] for _ in range(2)]
    assert "`routez` is not a known field" in told[0] and "did you mean `route`?" in told[0]
    assert "`browser` is not supported" in told[1]
    dev.save("index.ts", says("two"))  # the warning is not repeated
    assert dev.wait_for("finding", "reloaded")["event"] == "reloaded"


def test_development_variables_are_read_and_watched(start: Start) -> None:
    worker = "export default { fetch(_: Request, env: any) { return new Response(env.WORD) } }"
    dev = start(**{"index.ts": worker, "atoll.toml": CONFIG + '[vars]\nWORD = "config"\n', ".dev.vars": "WORD=mine"})
    assert dev.get() == (200, "mine")
    dev.save(".dev.vars", "WORD=other")
    dev.wait_for("reloaded")
    assert dev.get() == (200, "other")


def test_calls_in_flight_finish_with_their_version(start: Start) -> None:
    slow = 'export default { async fetch() { await scheduler.wait(1500); return new Response("old") } }'
    dev = start(**{"index.ts": slow})
    answers: list[tuple[int, str]] = []
    asked = [threading.Thread(target=lambda: answers.append(dev.get())) for _ in range(5)]
    for thread in asked:
        thread.start()
    while json.loads(dev.get("admin/pool", host=f"control.localhost:{dev.port}")[1])["in_flight"] < 5:
        pass
    dev.save("index.ts", says("new"))
    dev.wait_for("reloaded")
    assert dev.get() == (200, "new")
    for thread in asked:
        thread.join()
    assert answers == [(200, "old")] * 5


def test_an_engine_that_dies_is_replaced(start: Start) -> None:
    dev = start()
    assert dev.get() == (200, "one")
    engines = [pid for pid in family(dev.process.pid) if b"main.cjs" in command_line(pid)]
    for pid in engines:
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while dev.get() != (200, "one"):
        assert time.monotonic() < deadline


def test_the_scheduled_handler_can_be_run_manually(start: Start) -> None:
    worker = "export default { fetch() {}, scheduled(c: any) { console.info(c.cron, c.scheduledTime) } }"
    dev = start(**{"index.ts": worker})
    assert dev.get("cdn-cgi/handler/scheduled?cron=*/5+*+*+*+*&time=1234") == (200, "Ran scheduled event\n")
    call = dev.wait_for("call")
    assert call["kind"] == "scheduled" and call["logs"][0]["message"] == "*/5 * * * * 1234"


def test_the_email_handler_can_be_run_manually(start: Start) -> None:
    worker = "export default { fetch() {}, email(m: any) { if (m.to !== 'a@b.example') m.setReject('no') } }"
    dev = start(**{"index.ts": worker})

    def deliver(to: str) -> tuple[int, str]:
        url = f"{dev.url}cdn-cgi/handler/email?from=c@d.example&to={to}"
        try:
            with urllib.request.urlopen(url, data=b"Subject: Hi\r\n\r\nHello", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    assert deliver("a@b.example") == (200, "Worker successfully processed email")
    assert deliver("e@b.example") == (400, "Worker rejected email with the following reason: no")


def test_a_cron_fires_by_itself(start: Start) -> None:
    """On a clock that starts two seconds before a full minute."""
    worker = "export default { fetch() {}, scheduled(c: any) { console.info(c.cron, c.scheduledTime % 60000) } }"
    early = 58 - time.time() % 60
    shifted = f"import time; real = time.time; time.time = lambda: real() + {early}; "
    program = (sys.executable, "-c", shifted + "from atoll.cli.main import main; main(prog_name='atoll')")
    config = CONFIG + '[triggers]\ncrons = ["* * * * *"]\n'
    dev = start(program=program, **{"index.ts": worker, "atoll.toml": config})
    assert dev.wait_for("log")["message"] == "* * * * * 0"
    assert dev.wait_for("call")["kind"] == "scheduled"


def test_many_saves_in_a_row_end_with_the_last_one(start: Start) -> None:
    dev = start()
    for i in range(1000):
        dev.save("index.ts", says(f"save {i}") if i % 7 else "export default {")
    dev.save("index.ts", says("the last"))
    deadline = time.monotonic() + 60
    while dev.get() != (200, "the last"):
        assert time.monotonic() < deadline
    assert dev.process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopping_leaves_no_process_port_or_file_behind(start: Start, number: signal.Signals) -> None:
    dev = start(**{"index.ts": 'import { x } from "./x";\n' + says("bundled"), "x.ts": "export enum x {}"})
    assert dev.get() == (200, "bundled")
    processes = family(dev.process.pid)
    assert len(processes) >= 3  # the session, an engine and a bundler
    before = {path.name for path in dev.folder.iterdir()}
    assert dev.stop(number) == 0
    assert not [pid for pid in processes if alive(pid)]
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", dev.port))
    assert {path.name for path in dev.folder.iterdir()} == before <= {"atoll.toml", "index.ts", "x.ts", ".atoll"}
    assert "Traceback" not in "".join(dev.stderr)


def test_the_error_for_a_taken_port_names_the_process(start: Start, tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(AssertionError, match=f"port {port} is taken by process {os.getpid()}"):
            start("--host", "127.0.0.1", "--port", str(port))


def test_a_second_session_of_the_same_project_is_refused_with_the_reason(start: Start) -> None:
    first = start()
    with pytest.raises(AssertionError, match=f"already runs this project, as process {first.process.pid}"):
        start()
