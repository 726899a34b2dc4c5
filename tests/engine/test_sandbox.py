"""The sandbox of the engine: attempts from inside fail, against each layer alone and against all together."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from engine_room import HELLO, EngineRoom, script

from atoll.engine.pool import PoolLimits
from atoll.engine.process import confine, launch, sandbox
from atoll.engine.process import engine_process as process
from atoll.engine.process.engine_process import find_files
from atoll.engine.process.memory import engine_bytes
from atoll.errors import StartError
from atoll.wire.generated import SPARES_GROWTH
from tests import running
from tests.running import COMMAND, Atoll

SOURCE = Path(__file__).resolve().parents[2] / "engine" / "src" / "sandbox" / "forbidden.cc"
NAMES = re.findall(r'^    \{"([^"]+)"', SOURCE.read_text(), re.MULTILINE)
LAYERS = (
    confine.NAMESPACES,
    confine.PRIVATE_ROOT,
    confine.UID,
    confine.CAPABILITIES,
    confine.LIMITS,
    confine.PRIVILEGES,
    confine.LANDLOCK,
)
# These calls return an error, because a library may legitimately try them. All others end the engine.
ANSWERED = {
    "open a file": errno.EACCES,
    "open its environment": errno.EACCES,
    "open its memory": errno.EACCES,
    "list the root folder": errno.EACCES,
    "make a file": errno.EACCES,
    "look at a file": errno.EACCES,
    "make a folder": errno.EACCES,
    "remove a file": errno.EACCES,
    "rename a file": errno.EACCES,
    "change a mode": errno.EACCES,
    "map a file": errno.EPERM,
    "make a file in memory": errno.EPERM,
    "receive a descriptor on its socket": errno.EPERM,
    "send a descriptor": errno.EPERM,
    "shared memory": errno.EPERM,
    "message queues": errno.EPERM,
    "clone3": errno.ENOSYS,
    "slow the parent down": errno.EPERM,
    "slow its group down": errno.EPERM,
    "change the parent's slices": errno.EPERM,
    "limit the parent": errno.EPERM,
    "move the parent": errno.EPERM,
    "become dumpable": errno.EPERM,
    "outlive the parent": errno.EPERM,
    "device control": errno.EPERM,
}
REFUSALS = {-errno.EPERM, -errno.EACCES, -errno.ENOSYS}
# Some kernels lack these entirely.
NO_CONTROL = {"an x32 call", "load a module", "load a kernel", "ports"}


def probe(
    *names: str, mode: str = "require", without: tuple[str, ...] | None = (), **popen: Any
) -> tuple[int, list[int], str]:
    """Makes attempts in a process launched like an engine. Returns its exit code, the kernel's answers and the report.

    `without` names layers that the launcher leaves out; None leaves out all.
    """
    files = find_files()
    readable = sandbox.needed_files(files.node, files.main, files.addon)
    plan = "" if without is None else sandbox.plan(readable, without=without)
    ours, theirs = socket.socketpair()
    snapshot, ledger = os.open(files.web, os.O_RDONLY), os.memfd_create("ledger")
    told, report = os.pipe()
    fds = (theirs.fileno(), snapshot, ledger, ours.fileno(), report)
    command = [str(files.node), str(files.main), "probe", ",".join(names), "--sandbox", mode]
    prefix = popen.pop("prefix", [])
    try:
        done = subprocess.run(
            [*prefix, sys.executable, "-I", "-S", "-B", launch.__file__, *map(str, fds), plan, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            pass_fds=fds,
            timeout=30,
            check=False,
            **popen,
        )
    finally:
        ours.close()
        theirs.close()
        for fd in (snapshot, ledger, report):
            os.close(fd)
    with os.fdopen(told) as pipe:
        said = pipe.read()
    assert done.returncode <= 0, done.stdout + done.stderr
    assert "leaks" not in done.stderr or mode != "require", done.stderr
    return done.returncode, [int(line) for line in done.stdout.split()], said


def only(*layers: str) -> tuple[str, ...]:
    return tuple(layer for layer in LAYERS if layer not in layers)


# --- everything together ---


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ANSWERED])
def test_an_attack_ends_the_engine(name: str) -> None:
    assert probe(name)[:2] == (-signal.SIGSYS, [])


def test_calls_that_libraries_may_try_return_an_error() -> None:
    code, results, _ = probe(*ANSWERED)
    assert code == 0
    assert dict(zip(ANSWERED, results, strict=True)) == {name: -number for name, number in ANSWERED.items()}


@pytest.mark.skipif(os.geteuid() != 0, reason="other users lack these rights without any sandbox")
def test_without_a_sandbox_the_same_attempts_succeed() -> None:
    names = [name for name in NAMES if name not in NO_CONTROL]
    code, results, report = probe(*names, mode="off", without=None)
    assert (code, report) == (0, "")
    assert not [name for name, result in zip(names, results, strict=True) if result in REFUSALS]


def test_every_attempt_named_here_exists_in_the_engine() -> None:
    assert set(ANSWERED) | NO_CONTROL <= set(NAMES)
    assert len(NAMES) == len(set(NAMES)) >= 60
    assert probe("something else")[:2] == (0, [-errno.ENOENT])


# --- each layer alone, without the filter ---


def alone(layer: tuple[str, ...], *names: str) -> list[int]:
    code, results, report = probe(*names, mode="off", without=only(*layer))
    assert code == 0
    assert [line.split(" ABI")[0] for line in report.splitlines() if line[0] == "+"] == [f"+{name}" for name in layer]
    return results


def test_landlock_alone_refuses_files_tcp_and_signals() -> None:
    names = ("open a file", "open its environment", "make a file", "list the root folder", "connect to the machine")
    layers = (confine.PRIVILEGES, confine.LANDLOCK)  # a user other than root needs the first for the second
    assert alone(layers, *names) == [-errno.EACCES] * 5
    assert alone(layers, "signal the parent") == [-errno.EPERM]


@pytest.mark.skipif(os.geteuid() != 0, reason="a plain user loses all rights together with the namespaces")
def test_namespaces_alone_leave_no_network() -> None:
    assert alone((confine.NAMESPACES,), "connect to the machine", "open a file")[0] == -errno.ENETUNREACH


def test_the_private_root_alone_leaves_no_files() -> None:
    layers = (confine.NAMESPACES, confine.PRIVATE_ROOT)
    absent, environment, made = alone(layers, "open a file", "open its environment", "make a file")
    assert (absent, environment) == (-errno.ENOENT, -errno.ENOENT)
    assert made in (-errno.ENOENT, -errno.EROFS)


def test_without_namespaces_nothing_is_mounted_anywhere() -> None:
    before = Path("/proc/mounts").read_text()
    _, _, report = probe("open a file", mode="off", without=(confine.NAMESPACES,))
    assert f"-{confine.PRIVATE_ROOT}: needs namespaces" in report
    assert Path("/proc/mounts").read_text() == before


# --- users that start it ---


def runnable_by_others() -> bool:
    """True if another user can run this Python; false if it is in root's home."""
    done = subprocess.run(
        ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", sys.executable, "-c", ""],
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="a plain user runs all other tests like this")
def test_a_plain_user_gets_the_same_sandbox() -> None:
    if not runnable_by_others():
        pytest.skip("this Python is in a folder that only root may enter")
    prefix = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
    code, results, report = probe("open a file", "map a file", prefix=prefix)
    assert (code, results) == (0, [-errno.EACCES, -errno.EPERM])
    assert "-" not in {line[0] for line in report.splitlines()}, report
    assert "+uid 12345" in report


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root, to give them up")
def test_root_without_capabilities_reports_the_missing_layers() -> None:
    gone = "-sys_admin,-setuid,-setgid"
    code, _, report = probe("open a file", prefix=["setpriv", f"--bounding-set={gone}", f"--inh-caps={gone}"])
    assert code == 0
    missing = [line for line in report.splitlines() if line[0] == "-"]
    assert len(missing) == 1 and missing[0].startswith(f"-{confine.UID}: root outside of its user namespace")


@pytest.mark.skipif(os.geteuid() != 0, reason="a plain user keeps its uid")
async def test_an_installation_in_the_home_of_root_works_as_user_nobody(
    tmp_path: Path, open_room: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir(0o700)
    there, files = {}, find_files()
    for name in ("node", "main", "addon", "web"):
        path: Path = getattr(files, name)
        there[name] = home / path.name
        try:
            os.link(path, there[name])
        except OSError:  # the home is on another disk
            shutil.copy2(path, there[name])
    room: EngineRoom = await open_room(files=process.EngineFiles(**there), sandbox="require")
    assert (await room.get(script(HELLO))).body == b"hello"
    # Without its own root folder the engine must stay root to read them, and reports it.
    monkeypatch.setattr(process, "plan", partial(sandbox.plan, without=(confine.NAMESPACES,)))
    room = await open_room(files=process.EngineFiles(**there), sandbox="try")
    assert (await room.get(script(HELLO))).body == b"hello"
    assert any("uid: the files of the engine cannot be read" in text for text in room.supervisor.layers.missing)
    assert confine.CAPABILITIES in room.supervisor.layers.held


# --- a node ---


def test_the_start_up_line_lists_the_active_layers(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(sandbox="require", engines=1)
    node.wait_until(lambda: "  sandbox: " in node.log())
    uid = confine.NOBODY if os.geteuid() == 0 else os.geteuid()
    assert re.search(rf"  sandbox: namespaces, private root, uid {uid}, no capabilities, .*, seccomp\n", node.log())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root, to give them up")
def test_with_require_a_node_that_cannot_confine_engines_does_not_start(tmp_path: Path) -> None:
    gone = "-sys_admin,-setuid,-setgid"
    command = [*COMMAND, "--port=0", f"--data={tmp_path}", "--engines=1", "--sandbox=require"]
    done = subprocess.run(
        ["setpriv", f"--bounding-set={gone}", f"--inh-caps={gone}", *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "error: the sandbox of the engine is not whole: uid: root outside" in done.stderr
    assert "hint: docs/concepts/security.md" in done.stderr


# A user namespace that allows no further ones, without any capability: the most that a container gives.
CONTAINER = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"'


def in_container(*command: str) -> list[str]:
    return ["unshare", "--user", "--map-root-user", "sh", "-c", CONTAINER, "sh", *command]


def has_containers() -> bool:
    return subprocess.run(in_container("true"), capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_containers(), reason="user namespaces are not available here")
def test_in_a_container_require_names_what_is_missing_and_refuses(tmp_path: Path) -> None:
    command = [*COMMAND, "--port=0", f"--data={tmp_path}", "--engines=1", "--sandbox=require"]
    done = subprocess.run(in_container(*command), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "the sandbox of the engine is not whole: namespaces: none may be made here" in done.stderr
    for missing in ("a container without the right to", "private root: needs namespaces", "uid: root may not become"):
        assert missing in done.stderr


@pytest.mark.skipif(not has_containers(), reason="user namespaces are not available here")
def test_in_a_container_try_serves_with_all_other_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "COMMAND", in_container(*COMMAND))
    node = Atoll(tmp_path, sandbox="try", engines=1)
    node.start()
    try:
        node.deploy("hello", HELLO)
        assert node.get("hello").text == "hello"
        node.wait_until(lambda: "  sandbox: " in node.log())
        held = re.search(r"  sandbox: (.*)\n", node.log())
        assert held is not None
        assert held[1].startswith("no capabilities, limits (not of threads), no new privileges, landlock ABI"), held[1]
        assert ", seccomp" in held[1] and "missing: namespaces: none may be made here" in held[1]
        assert "IS NOT FULLY CONFINED" in node.log()
    finally:
        assert node.stop() == 0


# --- a running engine, seen from outside ---


async def test_the_kernel_shows_a_confined_engine(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(sandbox="require")
    assert (await room.get(script(HELLO))).body == b"hello"
    folder = Path(f"/proc/{room.supervisor.pids[0]}")
    for task in (folder / "task").iterdir():
        status = (task / "status").read_text()
        facts = dict(line.split(":", 1) for line in status.splitlines())
        assert (facts["Seccomp"].strip(), facts["NoNewPrivs"].strip()) == ("2", "1")
        assert {facts[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
        assert set(facts["Uid"].split()) == {str(confine.NOBODY if os.getuid() == 0 else os.getuid())}
    if os.geteuid() != 0:
        return  # other users cannot see the rest: the engine is not dumpable
    assert facts["CapBnd"].strip() == "0" * 16 and facts["Groups"].strip() == ""
    assert (folder / "environ").stat().st_uid == 0, "the engine is dumpable"
    assert (folder / "environ").read_bytes() == b"OPENSSL_CONF=/dev/null\0"
    assert os.readlink(folder / "cwd") == "/"
    assert not [name for name in ("etc/passwd", "proc", "dev", "root/.ssh") if (folder / "root" / name).exists()]
    for kind in ("mnt", "net", "ipc", "uts", "cgroup", "user"):
        assert os.readlink(folder / "ns" / kind) != os.readlink(f"/proc/self/ns/{kind}"), kind
    kinds = {os.readlink(fd).split(":")[0] for fd in (folder / "fd").iterdir()}
    assert kinds <= {"/dev/null", "pipe", "socket", "anon_inode", "/memfd"} | {k for k in kinds if "snapshot" in k}
    assert (folder / "oom_score_adj").read_text().strip() == confine.OOM_SCORE
    limits = (folder / "limits").read_text()
    isolates = PoolLimits().max_loaded + SPARES_GROWTH  # the room has one spare, which demand may multiply
    data = engine_bytes() + process.UNUSED_DATA + isolates * process.ISOLATE_DATA
    for name, most in (
        ("core file size", 0),
        ("file size", 0),
        ("open files", confine.DESCRIPTORS),
        ("data size", data),
        ("processes", confine.THREADS),
    ):
        assert re.search(rf"Max {name} +{most} +{most}", limits), name


@pytest.mark.parametrize("layer", LAYERS)
async def test_require_refuses_an_engine_that_lacks_a_layer(
    snapshots: Path, make_room: Callable[..., EngineRoom], monkeypatch: pytest.MonkeyPatch, layer: str
) -> None:
    monkeypatch.setattr(process, "plan", partial(sandbox.plan, without=(layer,)))
    with pytest.raises(StartError) as refused:
        await make_room(snapshots, sandbox="require").supervisor.start()
    assert f"{layer}: left out" in str(refused.value)
    assert "--sandbox=try" in refused.value.hint


async def test_require_refuses_an_engine_without_a_filter(
    snapshots: Path, make_room: Callable[..., EngineRoom], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.EngineCommand, "arguments", lambda command: [*unfiltered(command), "--sandbox", "off"])
    unfiltered: Callable[[process.EngineCommand], list[str]]

    def unfiltered(command: process.EngineCommand) -> list[str]:
        return [str(command.files.node), *process.V8_FLAGS, str(command.files.main), "run"]

    with pytest.raises(StartError, match="seccomp: the kernel shows no filter"):
        await make_room(snapshots, sandbox="require").supervisor.start()


async def test_try_continues_and_warns_about_missing_layers(
    open_room: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(process, "plan", partial(sandbox.plan, without=(confine.NAMESPACES, confine.LANDLOCK)))
    room: EngineRoom = await open_room(engines=2, sandbox="try")
    assert (await room.get(script(HELLO))).body == b"hello"
    warnings = [text for text in caplog.messages if "NOT FULLY CONFINED" in text]
    assert len(warnings) == 1 and "landlock: left out" in warnings[0] and "namespaces: left out" in warnings[0]
    assert any('leaks: "connect to the machine" is not refused' in text for text in caplog.messages)
    assert "missing: namespaces: left out" in str(room.supervisor.layers)
    assert sandbox.SECCOMP in room.supervisor.layers.held


async def test_off_is_off(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(sandbox="off")
    assert (await room.get(script(HELLO))).body == b"hello"
    assert str(room.supervisor.layers) == "off"
    assert sandbox.read_layers("", room.supervisor.pids[0]).held == ()


async def test_an_engine_that_the_filter_killed_is_replaced_and_the_log_says_why(
    room: EngineRoom, caplog: pytest.LogCaptureFixture
) -> None:
    pid = room.supervisor.pids[0]
    os.kill(pid, signal.SIGSYS)
    await room.until(lambda: room.supervisor.pids not in ([], [pid]), "the replacement")
    assert any("killed by the sandbox" in text for text in caplog.messages)
    assert (await room.get(script(HELLO))).body == b"hello"
