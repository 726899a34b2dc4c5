"""Removes all rights that an engine does not need from the process that becomes one. Only launch.py uses it.

Each layer is tried on its own. It holds, or it is reported as missing with the kernel's reason; sandbox.py decides from
outside whether that is enough. The order is fixed: mounting needs the privileges that later steps give up, and Landlock
comes last because every step before it opens files. The filter of system calls is not here: node needs more calls to
start than to run, so the engine installs it itself (engine/src/sandbox/sandbox.cc).

Standard library and ctypes only: this runs in a bare interpreter without the packages of the node.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

NOBODY = 65534

# The layers, by the names that operators read.
NAMESPACES, PRIVATE_ROOT, UID, CAPABILITIES = "namespaces", "private root", "uid", "no capabilities"
LIMITS, PRIVILEGES, LANDLOCK = "limits", "no new privileges", "landlock"

# linux/sched.h
NEW_MOUNTS, NEW_CGROUP, NEW_UTS, NEW_IPC, NEW_USER, NEW_NET = (
    0x00020000,
    0x02000000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x40000000,
)
NEW_ALL = NEW_MOUNTS | NEW_CGROUP | NEW_UTS | NEW_IPC | NEW_NET

NO_NAMESPACES = "a container without the right to, or user namespaces are off"

# linux/mount.h
READ_ONLY, NO_SUID, NO_DEV, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE = 32, 4096, 16384, 1 << 18
DETACH = 2

# linux/prctl.h, linux/capability.h
DROP_BOUND, NO_NEW_PRIVS, AMBIENT, AMBIENT_CLEAR = 24, 38, 47, 4
CAPABILITY_VERSION = 0x20080522

# linux/landlock.h; these three system calls have one number on every machine
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
GET_VERSION, PATH_BENEATH = 1, 1
EXECUTE, READ_FILE = 1, 4
ACCESS_OF_ABI = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}  # of later ones: the last
TCP_ABI, TCP = 4, 3  # bind and connect
SCOPE_ABI, SCOPE = 6, 3  # abstract sockets and signals stay inside

# Where the engine's root can be mounted: any folder that exists and contains no file of the engine.
MOUNT_POINTS = ("/mnt", "/media", "/srv", "/sys", "/opt", "/tmp")

THREADS = 512  # of one engine: at most 64 of ours, and V8's
THREADS_COUNTED_APART = (5, 14)  # from this kernel on, threads are counted per user namespace instead of per user
NOT_OF_THREADS = "(not of threads)"  # reported on older kernels and without a user namespace
DESCRIPTORS = 8192  # of one engine: an object that is in use has its file open, for reading
OOM_SCORE = "500"  # when memory runs out, the kernel kills an engine rather than the node

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


class Confinement:
    """Applies the layers to this process."""

    def __init__(self, files: list[str], *, data_bytes: int = 0, without: Iterable[str] = ()) -> None:
        self._files = files  # the files that node reads to start, node first
        self._data_bytes = data_bytes  # the limit of writable memory; 0: none
        self._without = frozenset(without)  # layers that a test leaves out, to check that the others hold
        self._proc = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY)
        self._outer_uid = os.getuid()
        self._own_mounts = False  # in a mount namespace
        self._own_files = False  # in a root of its own
        self._own_users = False  # in a user namespace
        self._stays: OSError | None = None  # why OOM_SCORE could not be set
        self.report: list[str] = []

    def apply(self) -> str:
        """Apply what this kernel and user allow. Returns a line per layer: `+name detail` or `-name: reason`."""
        self._go_first()
        self._try(NAMESPACES, self._namespaces)
        self._try(PRIVATE_ROOT, self._private_root)
        self._try(UID, self._leave_user)
        self._try(CAPABILITIES, self._no_capabilities)
        self._try(LIMITS, self._limits)
        self._try(PRIVILEGES, lambda: prctl(NO_NEW_PRIVS, 1))
        self._try(LANDLOCK, self._landlock)
        os.close(self._proc)
        return "\n".join(self.report)

    def _try(self, name: str, layer: Callable[[], str | None]) -> None:
        try:
            if name in self._without:
                raise OSError(0, "left out")
            detail = layer()
        except OSError as error:
            self.report.append(f"-{name}: {error.strerror or error}")
        except (AttributeError, ValueError) as error:  # a C library without the function, a limit that cannot be set
            self.report.append(f"-{name}: {error}")
        else:
            self.report.append(f"+{name} {detail}" if detail else f"+{name}")

    # --- namespaces ---

    def _namespaces(self) -> None:
        """No network but a loopback that is down; own shared memory, host name and mounts."""
        uid, gid = os.getuid(), os.getgid()
        if uid != 0 or libc.unshare(NEW_ALL) != 0:  # not root, or root in a container without its rights
            try:
                check(libc.unshare(NEW_ALL | NEW_USER))
            except OSError as error:
                raise OSError(0, f"none may be made here ({error.strerror}); {NO_NAMESPACES}") from None
            self._map_user(uid, gid)
        self._own_mounts = True

    def _map_user(self, uid: int, gid: int) -> None:
        """In a new user namespace: map uid 65534 inside to the current user outside."""
        self._own_users = True
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{NOBODY} {uid} 1"),
            ("gid_map", f"{NOBODY} {gid} 1"),
        ):
            write_self(self._proc, name, text)

    # --- files ---

    def _private_root(self) -> None:
        """A root folder with only the files that node needs to start: no /proc, no /dev, no /tmp."""
        if not self._own_mounts:
            raise OSError(0, "needs namespaces")
        free = [point for point in MOUNT_POINTS if not any(file.startswith(point + "/") for file in self._files)]
        point = next(filter(os.path.isdir, free), "")
        if not point:
            raise OSError(0, f"none of {', '.join(MOUNT_POINTS)} can be mounted on")
        mount(None, "/", None, RECURSIVE | PRIVATE)
        mount("tmpfs", point, "tmpfs", NO_SUID | NO_DEV, "size=64k,nr_inodes=256,mode=755")
        os.umask(0o022)
        for file in self._files:
            target = Path(point + file)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
            mount(file, str(target), None, BIND)
            kept = NO_EXEC if os.statvfs(target).f_flag & os.ST_NOEXEC else 0  # an unprivileged user may not clear it
            mount(None, str(target), None, REMOUNT | BIND | READ_ONLY | NO_SUID | NO_DEV | kept)
        os.chdir(point)
        try:
            check(libc.pivot_root(b".", b"."))  # the old root is now on top of the new one
            check(libc.umount2(b".", DETACH))
        finally:
            os.chdir("/")
        mount(None, "/", None, REMOUNT | BIND | READ_ONLY | NO_SUID | NO_DEV | NO_EXEC)
        self._own_files = True

    def _landlock(self) -> str:
        """Allow reading the files that node needs; no TCP, no signals or abstract sockets to other processes."""
        abi = check(libc.syscall(CREATE_RULESET, None, 0, GET_VERSION))
        rules = struct.pack("=Q", ACCESS_OF_ABI[min(abi, max(ACCESS_OF_ABI))])
        if abi >= TCP_ABI:
            rules += struct.pack("=Q", TCP)
        if abi >= SCOPE_ABI:
            rules += struct.pack("=Q", SCOPE)
        ruleset = check(libc.syscall(CREATE_RULESET, rules, len(rules), 0))
        # Node requires the OpenSSL configuration that it is given, /dev/null, unless it is missing (private root).
        for file in self._files if self._own_files else [*self._files, "/dev/null"]:
            fd = os.open(file, os.O_PATH)
            access = READ_FILE | EXECUTE if os.access(file, os.X_OK) else READ_FILE
            rule = struct.pack("=Qi", access, fd)
            check(libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, rule, 0))
            os.close(fd)
        check(libc.syscall(RESTRICT_SELF, ruleset, 0))
        os.close(ruleset)
        return f"ABI {abi}"

    # --- who it is ---

    def _leave_user(self) -> str:
        """Drop root to uid 65534. Other users keep their uid; they may not change it."""
        if self._outer_uid != 0:
            return str(self._outer_uid)
        if self._own_users:
            raise OSError(0, "root outside of its user namespace: the real one may not be left here")
        try:
            can_read = self._own_files or self._nobody_can_read()
            if can_read:
                drop_bound()
                os.setgroups([])
                self._count_apart()
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
        except OSError as error:
            raise OSError(0, f"root may not become {NOBODY} here ({error.strerror}); it stays rightless root") from None
        if not can_read:
            raise OSError(0, "the files of the engine cannot be read by other users; it stays root without its rights")
        return str(NOBODY)

    def _count_apart(self) -> None:
        """Enter a user namespace as root too, if possible, so that threads of engines are counted on their own.

        Root must own it: the owner of a user namespace may inspect its processes, and other programs also run as uid
        65534. The ids in it can only be mapped from outside, by a helper process.
        """
        waits, go = os.pipe()
        outside = os.fork()
        if outside == 0:
            self._map_from_outside(waits, go)
        os.close(waits)
        try:
            self._own_users = libc.unshare(NEW_USER) == 0
            if self._own_users:
                os.write(go, b"1")
        finally:
            os.close(go)
            os.waitpid(outside, 0)

    def _map_from_outside(self, waits: int, go: int) -> None:
        """Runs in the helper process; does not return."""
        os.close(go)
        try:
            if os.read(waits, 1):
                for name in ("uid_map", "gid_map"):
                    write_self(self._proc, name, f"{NOBODY} {NOBODY} 1")
        finally:
            os._exit(0)  # if the mapping failed, setresuid fails in the caller

    def _nobody_can_read(self) -> bool:
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
        try:
            node_runs = os.access(self._files[0], os.X_OK, effective_ids=True)
            return node_runs and all(os.access(file, os.R_OK, effective_ids=True) for file in self._files)
        finally:
            os.seteuid(0)
            os.setegid(os.getgid())

    def _no_capabilities(self) -> None:
        try:
            drop_bound()
        except PermissionError:
            pass  # an unprivileged user has none to drop, and no_new_privs prevents new ones
        prctl(AMBIENT, AMBIENT_CLEAR)
        header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
        check(libc.capset(header, bytes(24)))

    def _go_first(self) -> None:
        """Have the kernel kill this process first when memory runs out. Must come before its /proc files are root's."""
        try:
            write_self(self._proc, "oom_score_adj", OOM_SCORE)
        except OSError as error:
            self._stays = error

    def _limits(self) -> str | None:
        if self._stays is not None:
            raise self._stays
        limits = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: 0,  # it may write no file; its output is a pipe
            resource.RLIMIT_MEMLOCK: 0,
            resource.RLIMIT_MSGQUEUE: 0,
            resource.RLIMIT_NOFILE: DESCRIPTORS,
        }
        if self._data_bytes:
            limits[resource.RLIMIT_DATA] = self._data_bytes
        if threads_bounded := self._own_users and kernel() >= THREADS_COUNTED_APART:
            limits[resource.RLIMIT_NPROC] = THREADS
        for limit, most in limits.items():
            allowed = resource.getrlimit(limit)[1]
            least = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
            resource.setrlimit(limit, (least, least))
        return None if threads_bounded else NOT_OF_THREADS


def kernel() -> tuple[int, ...]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(filter(str.isdigit, minor)))


def write_self(proc: int, name: str, text: str) -> None:
    """Write to a file of this process in /proc."""
    fd = os.open(name, os.O_WRONLY, dir_fd=proc)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def prctl(option: int, value: int) -> None:
    unsigned = ctypes.c_ulong
    check(libc.prctl(option, unsigned(value), unsigned(0), unsigned(0), unsigned(0)))


def drop_bound() -> None:
    """Empty the bounding set, so that no program executed from here can gain a capability."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text()) if os.path.exists("/proc/sys") else 63
    for capability in range(last + 1):
        try:
            prctl(DROP_BOUND, capability)
        except OSError as error:
            if error.errno == 22:  # EINVAL: beyond the last capability of this kernel
                return
            raise


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    def text(word: str | None) -> bytes | None:
        return None if word is None else os.fsencode(word)

    check(libc.mount(text(source), text(target), text(kind), ctypes.c_ulong(flags), text(data)))
