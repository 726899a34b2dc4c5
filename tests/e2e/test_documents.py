"""Runs the commands of guides and READMEs exactly as shown, in order, against a real node.

Only addresses and folders differ: a free port for 8080, the node's address for https://atoll.example, a test folder for
/var/lib and similar. The README's tour has its own test, which also checks the output (tests/cli/test_tour.py).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.documented import FENCE, ROOT, Shown, documents, named, typed_in
from tests.project.conftest import ESBUILD
from tests.running import Atoll

SECONDS = 60
CURL = shutil.which("curl")
# Commands that tests/test_documented.py checks but that do not run here: page, beginning of the command, reason.
ONLY_READ = [
    ("docs/bindings/d1.md", "atoll d1 ", "needs a project with migrations: tests/bindings/d1 has one"),
    ("README.md", "", "its tour is run by tests/cli/test_tour.py, and `make run` builds"),
    ("CONTRIBUTING.md", "", "it builds and runs the tests"),
    ("ARCHITECTURE.md", "", "it shows no console"),
    ("bench/", "", "benchmarks"),
    ("docs/reference/cli.md", "", "the help texts: each command is run by tests/cli/test_json.py"),
    ("docs/guides/first-worker.md", "make run", "builds"),
    ("docs/guides/operate.md", "git clone", "fetches the repository"),
    ("docs/guides/operate.md", "python3 -m venv", "installs"),
    ("docs/guides/operate.md", "make wheels", "builds; tests/packaging does"),
    ("docs/guides/install.md", "make wheels", "the same"),
    ("docs/guides/install.md", "python3 -m venv", "installs; tests/packaging does"),
    ("docs/guides/install.md", "docker", "needs Docker; bench/image.py runs the same steps without"),
    ("deploy/docker/", "", "the same"),
    ("deploy/compose/", "", "needs Docker; tests/test_deploy_files.py checks the file and its commands"),
    ("deploy/kubernetes/", "", "needs a cluster; tests/test_deploy_files.py merges and checks the objects"),
    ("deploy/terraform/", "", "needs an account; tests/test_deploy_files.py validates the files"),
    ("docs/guides/observe.md", "npx", "fetches esbuild"),
    ("docs/guides/cluster.md", "", "needs a PostgreSQL: tests/cluster has one, and several nodes"),
    ("docs/guides/wrangler.md", "", "needs a token and wrangler: tests/wrangler has both"),
    ("docs/guides/observe.md", "jq", "needs the bundle of the line above"),
    ("docs/guides/observe.md", "curl -N", "follows until it is ended; tests/control/test_logs_api.py does"),
    ("docs/reference/api.md", "curl -N", "follows until it is ended; tests/control/test_logs_api.py does"),
    ("docs/guides/https-and-proxies.md", "atoll serve --host 0.0.0.0 --port 80", "needs port 80 and certificates"),
    ("docs/guides/deploy.md", "atoll profile add", "needs a token to be typed; the README's tour and test_empty_input do"),
    ("docs/guides/tenants-and-tokens.md", "atoll hosts release", "needs a host that a deleted worker left: test_json.py"),
    ("docs/bindings/hyperdrive.md", "atoll hyperdrive update", "reads a file; tests/drivers runs the command"),
    ("docs/bindings/mtls.md", "atoll", "needs a certificate; tests/cli/test_json.py makes one and runs the commands"),
    ("docs/guides/databases.md", "atoll", "needs a database; tests/drivers runs the commands of this page"),
    ("docs/guides/databases.md", "curl", "the same"),
    ("docs/guides/email.md", "curl", "tests/cli/test_dev.py asks this of a project that receives email"),
    ("docs/reference/project.md", "npm run build", "needs a framework; tests/e2e/test_built_frameworks.py has some"),
    ("docs/reference/project.md", "atoll deploy", "the same"),
    ("docs/guides/develop.md", "atoll dev -c", "tests/cli/test_dev_workers.py runs several workers together"),
    ("docs/guides/develop.md", "curl", "tests/cli/test_dev.py asks this of a project that has a cron"),
]  # fmt: skip
STAYING = {"atoll serve": "is serving on", "atoll dev": "ready in", "atoll tail": "listening to"}
# Output that differs each time.
VARIES = re.compile(r"…|atoll-\d{8}-\d{6}\.tar|token   the control API|\d+ ticks so far|accepted|tail exception")


def only_read(shown: Shown) -> bool:
    return any(shown.place.startswith(page) and shown.text.startswith(begin) for page, begin, _ in ONLY_READ)


def run_in(page: Path) -> list[Shown]:
    return [shown for shown in typed_in(page) if not only_read(shown)]


PAGES = [path for path in documents() if run_in(path)]


def test_every_exception_still_matches_a_page() -> None:
    shown = [each for path in documents() for each in typed_in(path)]
    for page, begin, _ in ONLY_READ:
        assert begin == "" or any(each.place.startswith(page) and each.text.startswith(begin) for each in shown), begin
    assert len(PAGES) > 25 and sum(len(run_in(path)) for path in PAGES) > 80


class Reader:
    """Types the commands of a page into one shell."""

    def __init__(self, folder: Path, port: int, cwd: Path) -> None:
        self.folder, self.port = folder, port
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        (folder / "var/log/atoll").mkdir(parents=True)
        wrapper = bin_folder / "curl"  # fails on an error of the API, but not on one of a worker, which may be intended
        wrapper.write_text(
            f'#!/bin/sh\ncase "$*" in *" localhost:{port}"*|"localhost:{port}"*|*//localhost:{port}*)\n'
            f'  exec {CURL} --fail-with-body -sS "$@";;\nesac\nexec {CURL} -sS "$@"\n'
        )
        wrapper.chmod(0o755)
        path = f"{bin_folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        api = f"http://localhost:{port}"
        env = {"HOME": str(folder), "PATH": path, "LANG": "C.UTF-8", "ATOLL_API": api, "ATOLL_PORT": str(port)}
        env |= {"ATOLL_ESBUILD": str(ESBUILD), "ATOLL_ENGINES": "1", "ATOLL_DRAIN_SECONDS": "1"}
        self.shell = subprocess.Popen(
            ["bash", "--norc"], cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.staying: list[int] = []
        self.node: Atoll | None = None  # a node that runs before the page starts its own

    def here(self, text: str) -> str:
        """The command with the addresses and folders of this test."""
        api = f"http://localhost:{self.port}"
        text = re.sub(r"((?:localhost|127\.0\.0\.1)):8080", rf"\1:{self.port}", text)
        text = re.sub(r"^curl -OJ .*", r"(mkdir got; cd got; \g<0>)", text)  # curl -OJ never overwrites a file
        text = text.replace("https://atoll.example", api).replace(
            "examples/deploy.py", f"examples/deploy.py --server {api}"
        )
        text = re.sub(r"(atoll bench .*--seconds) \d+", r"\1 1", text)
        for outside in ("/etc/atoll", "/var/lib/atoll", "/var/log/atoll", "/opt/atoll", "/backup"):
            text = re.sub(rf"(?<![\w.]){outside}(?![\w-])", str(self.folder) + outside, text)
        return re.sub(r"atoll-\d{8}-\d{6}\.tar", "$(ls atoll-*.tar | head -1)", text)

    def types(self, shown: Shown) -> None:
        command = self.here(shown.text)
        ready = next((words for begin, words in STAYING.items() if shown.text.startswith(begin)), "")
        if ready:
            self._starts(command, ready)
            return
        deadline = time.monotonic() + SECONDS
        while True:
            output, code = self._sends(command)
            wanted = [line.strip() for line in shown.output.splitlines() if line.strip() and not VARIES.search(line)]
            if code == 0 and all(line in output for line in wanted):
                return
            again = code == 0 and time.monotonic() < deadline  # a queue or a tail takes a moment
            assert again, f"$ {command}\n{output}\nended with {code}; wanted {wanted}"

    def _starts(self, command: str, ready: str) -> None:
        """Starts a command that keeps running; the commands after it run in another terminal."""
        if command.startswith("atoll serve"):
            self.stops()
        log = self.folder / "staying.log"
        log.write_text("")
        output, _ = self._sends(f"{command} </dev/null >{log} 2>&1 & echo $!")
        pid = int(output.split()[-1])
        self.staying.append(pid)
        deadline = time.monotonic() + SECONDS
        while ready not in log.read_text():
            assert time.monotonic() < deadline and Path(f"/proc/{pid}").exists(), f"$ {command}\n{log.read_text()}"
            time.sleep(0.02)

    def _sends(self, command: str) -> tuple[str, int]:
        assert self.shell.stdin is not None and self.shell.stdout is not None
        # The marks are on their own lines, whatever the command prints.
        self.shell.stdin.write(f'{command}\ncode=$?; echo; echo "=== $code"\n')
        self.shell.stdin.flush()
        output = ""
        while not (found := re.search(r"\n=== (\d+)\n$", output)):
            line = self.shell.stdout.readline()
            assert line, output
            output += line
        return output[: found.start()], int(found[1])

    def stops(self) -> None:
        if self.node is not None:
            self.node.stop()
            self.node = None
        while self.staying:
            pid = self.staying.pop()
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            self._sends(f"wait {pid}")

    def leaves(self) -> None:
        self.stops()
        self.shell.communicate(timeout=SECONDS)


# What a page requires


def hello(reader: Reader) -> None:
    """A project, a worker of it with two versions, and names for the node."""
    api = f"http://localhost:{reader.port}"
    for command in (
        "atoll init typescript hello && cd hello && printf '[env.production.vars]\\nX = \"1\"\\n' >> atoll.toml",
        f"atoll profile add home --api {api} --no-check; atoll profile add staging --api {api} --no-check",
    ):
        output, code = reader._sends(command)
        assert code == 0, output


def deployed(reader: Reader) -> None:
    hello(reader)
    output, code = reader._sends("atoll deploy && atoll deploy --message again && atoll deploy --message more")
    assert code == 0, output


def prepared(*commands: str) -> Callable[[Reader], None]:
    def prepare(reader: Reader) -> None:
        for command in commands:
            output, code = reader._sends(reader.here(command))
            assert code == 0, output

    return prepare


def first_worker(reader: Reader) -> None:
    text = (ROOT / "docs/guides/first-worker.md").read_text("utf-8")
    script = next(block for _, language, block in FENCE.findall(text) if language == "js")
    (Path(f"/proc/{reader.shell.pid}/cwd").resolve() / "greeter.js").write_text(script)


def operate(reader: Reader) -> None:
    text = (ROOT / "docs/guides/operate.md").read_text("utf-8")
    config = next(block for _, language, block in FENCE.findall(text) if "[node]" in block)
    (reader.folder / "etc/atoll").mkdir(parents=True)
    (reader.folder / "var/lib").mkdir(parents=True)
    (reader.folder / "backup").mkdir()
    config = reader.here(config).replace('sandbox = "require"', 'sandbox = "try"')  # some test machines lack it
    (reader.folder / "etc/atoll/atoll.toml").write_text(config)


CACHES = """export default {
  async fetch() {
    const headers = { "cache-control": "max-age=600", "cache-tag": "product-7" };
    for (const path of ["y", "z"]) await caches.default.put(`http://x/${path}`, new Response("kept", { headers }));
    return new Response("kept\\n");
  },
};"""
EXAMPLE = f"atoll deploy {ROOT}/examples/"
SETUPS: dict[str, Callable[[Reader], None]] = {
    "docs/bindings/kv.md": prepared("atoll kv create visits; echo logo > logo.png"),
    "docs/bindings/queue.md": prepared(
        "atoll queues create jobs; atoll queues create failed",
        "export ATOLL_TOKEN=$(atoll token create pulls --scope admin --all-tenants)",
    ),
    "docs/bindings/durable-object.md": prepared(
        EXAMPLE + "counter-object", "curl http://counter-object.localhost:8080/ada"
    ),
    "docs/bindings/rate-limit.md": prepared(
        EXAMPLE + "rate-limit", 'curl -H "X-Client: user-7" http://rate-limit.localhost:8080/'
    ),
    "docs/bindings/cache.md": prepared(
        f"echo {shlex.quote(CACHES)} > keeps.js; atoll deploy keeps.js", "curl http://keeps.localhost:8080/"
    ),
    "docs/triggers/cron.md": prepared(EXAMPLE + "cron"),
    "docs/bindings/workflow.md": prepared(EXAMPLE + "order-workflow"),
    "docs/guides/email.md": prepared(
        EXAMPLE + "email-inbox --name support", "printf 'Subject: Hi\\n\\nHi' > message.eml"
    ),
    "docs/guides/from-cloudflare.md": prepared(
        "mkdir my-cloudflare-project; echo 'export default {fetch: () => new Response()}' > my-cloudflare-project/w.js",
        'printf \'name = "a"\\nmain = "w.js"\\ncompatibility_date = "2025-01-01"\\n\' > my-cloudflare-project/wrangler.toml',
    ),
    "docs/guides/static-assets.md": prepared(
        "mkdir public; echo home > public/index.html",
        'printf \'name = "my-site"\\n[assets]\\ndirectory = "./public"\\n\' > atoll.toml',
    ),
    "docs/guides/deploy.md": hello,
    "docs/guides/first-worker.md": first_worker,
    "docs/guides/operate.md": operate,
    "docs/reference/api.md": prepared(
        f"{EXAMPLE}hello-world --name hello",
        "echo 'export default {fetch: () => new Response()}' > worker.js; echo x > logo.bin",
    ),
    "examples/tail/README.md": prepared(EXAMPLE + "chat"),
}
SETUPS |= {f"docs/guides/{name}.md": deployed for name in ("versions-and-rollback", "secrets", "observe")}
SETUPS |= {"docs/guides/deploy-over-http.md": deployed}


def with_folders(reader: Reader) -> None:
    for folder in ("backup", "var/lib"):
        (reader.folder / folder).mkdir(parents=True)


def with_queue(reader: Reader) -> None:
    deployed(reader)
    made = "atoll queues create jobs || atoll queues list"  # another page may have made it
    token = "export ATOLL_TOKEN=$(atoll token create runbook --scope admin --all-tenants)"
    prepared(made, token)(reader)


SETUPS |= {"docs/guides/backup.md": with_folders, "docs/guides/upgrade.md": with_folders}


SETUPS |= {"docs/guides/runbook.md": with_queue}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    """The node of all pages that start none themselves."""
    node = Atoll(tmp_path_factory.mktemp("documents"), engines=1)
    node.start()
    yield node
    assert node.stop() == 0


@pytest.fixture
def reader(request: pytest.FixtureRequest, tmp_path: Path, shared: Atoll) -> Iterator[Reader]:
    """A shell and a running node; the page gets its own node if it starts another later."""
    page: Path = request.param
    commands = [shown.text for shown in run_in(page)]
    serves = any(command.startswith("atoll serve") for command in commands)
    needs_one = not serves or not commands[0].startswith(("atoll serve", "export PATH"))
    node = Atoll(tmp_path / "node", engines=1) if serves else shared
    if serves and needs_one:
        node.start()
    (tmp_path / "home/work").mkdir(parents=True)
    work = tmp_path / "home/work"
    if page.is_relative_to(ROOT / "examples"):
        shutil.copytree(ROOT / "examples", work / "examples")
    reader = Reader(tmp_path / "home", node.port, work)
    if serves and needs_one:
        reader.node = node
    yield reader
    reader.leaves()


@pytest.mark.skipif(CURL is None, reason="the documents use curl")
@pytest.mark.parametrize("reader", PAGES, ids=named, indirect=True)
def test_the_commands_of_a_page_work_as_shown(reader: Reader, request: pytest.FixtureRequest) -> None:
    page: Path = request.node.callspec.params["reader"]
    if named(page) in SETUPS:
        SETUPS[named(page)](reader)
    for shown in run_in(page):
        reader.types(shown)
