"""One job process, as the node sees it: started, given one job at a time, killed when it takes too long."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from atoll.offload.jobs import STEP, Job, JobError, OutOfMemory, ProcessLost, Result, TooMuchWork
from atoll.offload.messages import MESSAGE, Ending, JobAnswer, Task, decode_answer, encode_task
from atoll.offload.spool import write_all
from atoll.offload.threads import in_thread

log = logging.getLogger("atoll.offload")

LOST = "the process that did this work ended"


class JobProcess:
    """Made by `start`. `run` raises ProcessLost once the process has ended; `close` ends it."""

    def __init__(self, process: subprocess.Popen[bytes], own: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._socket = own
        self._answer: asyncio.Future[tuple[JobAnswer, int]] | None = None
        self.jobs = 0  # that it has begun
        self.is_alive = True
        own.setblocking(False)
        self._loop.add_reader(own, self._on_readable)

    @classmethod
    async def start(cls, memory_bytes: int, paths: Sequence[str] = ()) -> JobProcess:
        """Start a process. It takes about 100 ms on another core until its first job begins. Raises ProcessLost."""
        try:
            process, own = await asyncio.to_thread(_launch, memory_bytes, paths)
        except OSError as error:
            log.error("a job process could not be started: %s", error)
            raise ProcessLost("the process for this work could not be started") from None
        return cls(process, own)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def run(self, job: Job, args: dict[str, object], data: bytes, fd: int) -> Result:
        """Run a job on `data`, or on the file `fd`. If the caller is cancelled, it must close the process."""
        self.jobs += 1
        self._answer = self._loop.create_future()
        try:
            try:
                socket.send_fds(
                    self._socket, [encode_task(Task(job.function, job.seconds, args, data))], [fd] if fd >= 0 else []
                )
                answer, out = await self._answer
            except (OSError, ProcessLost):
                raise await self._loss(job) from None
        finally:
            self._answer = None
        if answer.ending is Ending.MEMORY:
            raise OutOfMemory("this needs more memory than one request may use")
        if answer.ending is Ending.FAILED:
            raise RuntimeError(f"{job.function} failed in its process:\n{answer.result.decode('utf-8', 'replace')}")
        return Result(answer.result, out)

    async def _loss(self, job: Job) -> JobError:
        """The error for a process that ended without an answer."""
        self._hang_up()
        code = await asyncio.to_thread(self._process.wait)
        if code == -signal.SIGXCPU:
            return TooMuchWork(f"this needs more than {job.seconds} s of CPU time, the most that one request may use")
        log.error("a job process ended with code %d in %s", code, job.function)
        return ProcessLost(LOST)

    def _on_readable(self) -> None:
        try:
            message, fds, _, _ = socket.recv_fds(self._socket, MESSAGE, 1)
        except BlockingIOError:
            return
        except OSError:
            message, fds = b"", []
        waiting = self._answer
        if not message:
            self._hang_up()
        elif waiting is not None and not waiting.done():
            waiting.set_result((decode_answer(message), fds[0] if fds else -1))
        else:  # its caller is gone
            for fd in fds:
                os.close(fd)

    def _hang_up(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self._loop.remove_reader(self._socket)
            self._socket.close()
            if self._answer is not None and not self._answer.done():
                self._answer.set_exception(ProcessLost(LOST))

    async def close(self) -> None:
        """Kill the process and wait until it has ended."""
        self._hang_up()
        self._process.kill()
        await asyncio.to_thread(self._process.wait)


def _launch(memory_bytes: int, paths: Sequence[str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    program = str(Path(__file__).with_name("child.py"))
    # The paths are for installations that -I ignores, such as a user's own.
    known = [path for path in (*paths, *sys.path) if path]
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", program, str(memory_bytes), *known],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            process_group=0,  # Ctrl-C is for the node
        )
    except BaseException:
        own.close()
        raise
    finally:
        theirs.close()
    return process, own


async def file_of(data: bytes) -> int:
    """A memory file with these bytes, for a job. The caller closes it."""
    fd = os.memfd_create("atoll-job", os.MFD_CLOEXEC)
    try:
        if len(data) <= STEP:
            write_all(fd, data)
        else:
            await in_thread(write_all, fd, data)
    except BaseException:
        os.close(fd)
        raise
    return fd
