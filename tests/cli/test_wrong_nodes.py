"""Commands with invalid arguments or a wrong server: an error with a hint, never a traceback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from atoll.cli.main import main

Run = Callable[..., tuple[int, str]]

COMMANDS = [
    ["workers"],
    ["workers", "show", "x"],
    ["versions", "x"],
    ["versions", "view", "1", "--worker", "x"],
    ["versions", "deploy", "--worker", "x"],
    ["versions", "deploy", "2@10", "--worker", "x"],
    ["deployments", "x"],
    ["routes"],
    ["hosts", "list"],
    ["logs", "x"],
    ["secret", "list", "--worker", "x"],
    ["kv", "namespaces"],
    ["queues", "list"],
    ["cron", "list", "x"],
    ["token", "list"],
    ["tenant", "list"],
    ["config", "--api"],
]


class Stranger(BaseHTTPRequestHandler):
    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*words: str, said: str = "") -> tuple[int, str]:
        ran = CliRunner().invoke(main, words, input=said)
        assert isinstance(ran.exception, SystemExit | None), ran.exception
        return ran.exit_code, ran.stderr

    return run


@pytest.fixture(params=[b"<html>log in</html>", b'{"ok":true}'], ids=["html", "json"])
def stranger(request: pytest.FixtureRequest) -> Iterator[str]:
    kind = type("Stranger", (Stranger,), {"body": request.param})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_answer_of_another_server_is_reported(stranger: str, run: Run, words: list[str]) -> None:
    where = [stranger] if words[-1] == "--api" else ["--api", stranger]
    code, said = run(*words, *where)
    if words == ["workers", "show", "x"] and code == 0:
        return  # the command shows any fields
    assert code == 1
    assert said.splitlines()[-1] == "hint: check that --api is a control host of Atoll"


def test_an_argument_that_is_not_utf8_is_reported(run: Run) -> None:
    code, said = run("logs", "\udcff")
    assert (code, said.splitlines()[-1]) == (2, "hint: type it in UTF-8")


@pytest.mark.parametrize(
    "words", [["workers", "delete", "x"], ["queues", "delete", "x"], ["queues", "purge", "x"]], ids=" ".join
)
def test_commands_that_confirm_tell_scripts_which_flag_to_use(run: Run, words: list[str]) -> None:
    code, said = run(*words, "--api", "http://127.0.0.1:9")
    assert (code, said.splitlines()[-1]) == (1, "hint: confirm with --yes")
    code, said = run(*words, "--api", "http://127.0.0.1:9", said="n\n")
    assert code == 1 and said.endswith("error: nothing was deleted\n")
