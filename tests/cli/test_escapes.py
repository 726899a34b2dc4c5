"""Text of a worker, a client or a node never controls the reader's terminal and never looks like Atoll's own output."""

from __future__ import annotations

import ast
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from atoll.node_log import LOG_FORMAT, LogFormatter
from tests.cli.dev_session import ATOLL, SECONDS, environment
from tests.cli.hostile_node import ATTACK, UNSAFE, hostile_node
from tests.cli.test_json import CALLS, CONFIG, WORKER
from tests.cli.test_projects import run
from tests.cli.test_terminal import Screen
from tests.project.conftest import ROOT
from tests.running import Atoll

ATTACK_IN_JS = json.dumps(ATTACK)
NOISY = f"""
const attack = {ATTACK_IN_JS};
export default {{
  fetch(request) {{
    console.log("said" + attack);
    console.error("%s", attack, {{ [attack]: attack }}, new Error(attack));
    const error = new TypeError("thrown" + attack);
    error.name = "Name" + attack;
    throw error;
  }},
}};
"""


def assert_harmless(printed: str) -> None:
    assert not UNSAFE.search(printed), repr(printed)
    assert not re.search(r"^ ?(error|hint): forged", printed, re.MULTILINE), printed


def test_no_answer_of_a_node_reaches_the_terminal_raw(atoll: Atoll, tmp_path: Path) -> None:
    """Every command against a node whose every string is an attack; then with --json, whose output must stay valid."""
    (tmp_path / "atoll.toml").write_text(CONFIG.replace("cli-json", "cli-escapes"))
    (tmp_path / "w.js").write_text(WORKER)
    (tmp_path / "secrets.json").write_text('{"ONE": "1"}')
    (tmp_path / "lines").write_text('{"key":"a","value":"b"}\n')
    run(tmp_path, "deploy", ATOLL_API=f"http://localhost:{atoll.port}")
    seen = 0
    with hostile_node(atoll.port) as api:
        for call in CALLS:
            words = [word.replace("cli-json", "cli-escapes") for word in call.replace("{id}", "nothing").split()]
            for more in ([], ["--json"]) if words[0] in ("workers", "logs", "versions", "token") else ([],):
                ran = subprocess.run(
                    [ATOLL, *words, *more], cwd=tmp_path, env=environment(tmp_path) | {"ATOLL_API": api}, text=True,
                    input="value", capture_output=True, check=False,
                )  # fmt: skip
                assert "Traceback" not in ran.stderr, ran.stderr
                assert_harmless(ran.stdout + ran.stderr)
                seen += "forged" in ran.stdout + ran.stderr
                if more:
                    json.loads(ran.stderr.splitlines()[-1] if ran.returncode else ran.stdout)  # talk may come before
    assert seen > 20  # the text is shown, escaped


def test_console_lines_and_exceptions_are_harmless_in_logs_and_tail(atoll: Atoll, tmp_path: Path) -> None:
    atoll.deploy("cli-noisy", NOISY)
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    tails = [
        subprocess.Popen(
            [ATOLL, "tail", "cli-noisy", *more], env=environment(tmp_path) | node, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        for more in ([], ["--outcome", "exception"], ["--json"])
    ]  # fmt: skip
    for tail in tails:
        assert tail.stderr is not None and tail.stderr.readline().startswith("listening")
    assert atoll.get("cli-noisy", "/a?b=%1b[2J", {"User-Agent": "\x9b31mx"}).status == 500
    for tail, ends in zip(tails, ("exception", "exception", '"exception": {'), strict=True):
        assert tail.stdout is not None
        printed = ""
        while not (ends in printed and "forged" in printed.partition(ends)[2]):
            line = tail.stdout.readline()
            assert line, printed
            printed += line
        tail.send_signal(signal.SIGINT)
        printed += tail.communicate(timeout=SECONDS)[0]
        assert_harmless(printed)
        assert r"\x1b]0;t\x07" in printed or r"\u001b]0;t\u0007" in printed
        if ends == "exception":  # lines of a worker are indented deeper than those of Atoll
            own = re.compile(r"\S+Z  \S|    (log|error|exception)  ")
            assert not [row for row in printed.splitlines() if not own.match(row) and not row.startswith(" " * 8)]
    logs = run(tmp_path, "logs", "cli-noisy", **node).stdout
    assert_harmless(logs)
    assert r"said\x1b]0;t\x07" in logs and "\n    exception  " in logs
    [record] = json.loads(run(tmp_path, "logs", "cli-noisy", "--json", **node).stdout)
    assert record["logs"][0]["message"].startswith("said" + ATTACK[:20])


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the process ended"
    return line


def test_console_lines_and_exceptions_are_harmless_in_dev(tmp_path: Path) -> None:
    (tmp_path / "w.js").write_text(NOISY)
    with subprocess.Popen(
        [ATOLL, "dev", "w.js", "--port", "0"], cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    ) as dev:  # fmt: skip
        printed = ""
        while not (found := re.search(r"http://localhost:(\d+)/, ready", printed)):
            printed += read_line(dev)
        subprocess.run(["curl", "-s", f"http://localhost:{found[1]}/x"], check=True, capture_output=True)
        while "thrown" not in printed:
            printed += read_line(dev)
        (tmp_path / "w.js").write_text(f"throw new Error({ATTACK_IN_JS})")
        while "\nerror: " not in printed:
            printed += read_line(dev)
        dev.send_signal(signal.SIGINT)
        printed += dev.communicate(timeout=SECONDS)[0]
    assert_harmless(printed)
    assert r"said\x1b]0;t\x07" in printed and "forged" in printed


def test_a_refused_deploy_cannot_forge_a_hint(atoll: Atoll, tmp_path: Path) -> None:
    (tmp_path / "w.js").write_text(f"throw new Error({ATTACK_IN_JS})")
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    said = run(tmp_path, "deploy", "w.js", "--name", "cli-forger", code=1, **node).stderr
    assert_harmless(said)
    assert "    error: forged\n    hint: forged" in said


@pytest.fixture
def terminal() -> Iterator[Callable[..., Screen]]:
    screens: list[Screen] = []

    def opened(folder: Path, *words: str, **more: str) -> Screen:
        screens.append(Screen(folder, words, **more))
        return screens[-1]

    yield opened
    for screen in screens:
        screen.process.wait(SECONDS)
        os.close(screen.main)


def test_a_value_of_kv_is_printed_raw_to_a_file_and_escaped_in_a_terminal(
    atoll: Atoll, tmp_path: Path, terminal: Callable[..., Screen]
) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    value = b"\x1b[2Jx\xff\x9b\xc2\x9b\r"
    (tmp_path / "value").write_bytes(value)
    run(tmp_path, "kv", "create", "cli-escapes", **node)
    run(tmp_path, "kv", "put", "cli-escapes", "key\x1b[2J", "--path", "value", **node)
    raw = subprocess.run(
        [ATOLL, "kv", "get", "cli-escapes", "key\x1b[2J"], env=environment(tmp_path) | node, capture_output=True,
        check=True,
    )  # fmt: skip
    assert raw.stdout == value
    screen = terminal(tmp_path, "kv", "get", "cli-escapes", "key\x1b[2J", **node)
    screen.read_rest()
    assert screen.raw == "\\x1b[2Jx\\xff\\x9b\\x9b\\r\r\n"
    assert run(tmp_path, "kv", "keys", "cli-escapes", **node).stdout == "key\\x1b[2J\n"
    exported = terminal(tmp_path, "kv", "export", "cli-escapes", **node)
    exported.read_rest()
    assert not UNSAFE.search(exported.raw.replace("\r\n", "\n"))


def test_a_backup_is_not_written_to_a_terminal(atoll: Atoll, tmp_path: Path, terminal: Callable[..., Screen]) -> None:
    screen = terminal(tmp_path, "backup", "-", ATOLL_API=f"http://localhost:{atoll.port}")
    screen.read_rest()
    assert "error: a terminal cannot take the archive" in screen.text and len(screen.text) < 300


def test_arguments_are_escaped_in_error_messages(tmp_path: Path) -> None:
    for words in (("\x1b[2J",), ("workers", "\x9b"), ("deploy", "no\x1b]0;t\x07.js"), ("logs", "--\x1b[2J")):
        assert_harmless(run(tmp_path, *words, code=1 if words[0] == "deploy" else 2).stderr)


def test_an_unexpected_error_is_escaped_too(tmp_path: Path) -> None:
    bug = f"import atoll.cli.main as m\ndef main(): raise RuntimeError({ATTACK!r})\nm.main = main\n"
    ran = subprocess.run(
        [sys.executable, "-c", f"{bug}from atoll.cli.start import start; start()"], cwd=tmp_path, text=True,
        env=environment(tmp_path), capture_output=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 1 and r"RuntimeError: \x1b]0;t\x07" in ran.stderr
    assert not UNSAFE.search(ran.stderr)


def test_only_atoll_itself_sets_colours(tmp_path: Path) -> None:
    said = run(tmp_path, "deploy", "\x1b[32mno.js", code=1, FORCE_COLOR="1").stderr
    assert "\x1b[31m" in said and "\\x1b[32mno.js" in said and "\x1b[32m" not in said


def test_a_terminal_with_a_limited_encoding_gets_escapes(tmp_path: Path) -> None:
    ran = subprocess.run(
        [ATOLL, "deploy", "日本.js"], cwd=tmp_path, capture_output=True, check=False,
        env=environment(tmp_path) | {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
    )  # fmt: skip
    assert ran.returncode == 1 and rb"\u65e5\u672c.js" in ran.stderr


def test_a_line_of_the_log_is_one_line_and_harmless() -> None:
    try:
        raise RuntimeError(ATTACK)
    except RuntimeError:
        record = logging.LogRecord("atoll", logging.ERROR, "", 1, "worker %s", (ATTACK,), sys.exc_info())
    record.created, record.msecs = 1_800_000_000.25, 250.0
    first, *rest = LogFormatter(LOG_FORMAT).format(record).split("\n")
    assert first.startswith("2027-01-15T08:00:00.250Z ERROR   atoll: worker \\x1b]0;t\\x07")
    assert rest and all(line.startswith("  ") for line in rest)
    assert_harmless("\n".join([first, *rest]))


def test_the_log_of_a_node_is_harmless_and_in_utc(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)
    node.deploy("log-noisy", f"queueMicrotask(() => {{ throw new Error({ATTACK_IN_JS}) }});\n{NOISY}")
    node.get("log-noisy", "/x")
    node.stop()
    log = (node.folder / "log").read_text()
    assert_harmless(log)
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING|ERROR) "
    assert [line for line in log.splitlines() if line and not re.match(rf"{stamp}|  |stopping: ", line)] == []


ALLOWED = {"talk.py": {"echo", "prompt", "confirm", "secho", "print"}, "ask.py": {"prompt"}}


def test_no_command_bypasses_the_output_module() -> None:
    """Only talk.py calls click.echo and similar functions; everything else uses talk.py."""
    wrong = []
    for path in sorted((ROOT / "atoll/cli").rglob("*.py")):
        allowed = ALLOWED.get(path.name, set())
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            if name in ("print", "click.echo", "click.secho", "click.prompt", "click.confirm", "click.style"):
                forbidden = name.removeprefix("click.") not in allowed | ({"style"} if allowed else set())
            else:
                forbidden = name.endswith(
                    (".stdout.write", ".stderr.write", "stdout.buffer.write", "pager", "writelines")
                )
                forbidden = forbidden and path.name != "talk.py"
            if forbidden:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} calls {name}")
    assert not wrong
