"""Writes deploy/docker/seccomp.json: `python -m tools.gen_seccomp`.

The profile is for containers of a node. It allows every system call of Linux but those below, and four that the
default profiles of container engines forbid: with unshare, mount, umount2 and pivot_root an unprivileged node
confines its engines by namespaces. A node needs nothing of what the list refuses, and most of that needs
rights that the container lacks.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

PROFILE = Path(__file__).parents[1] / "deploy/docker/seccomp.json"
TABLES = ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h")
CONFINING = ["mount", "pivot_root", "umount2", "unshare"]
# Flags of clone that make namespaces. Engines get theirs from unshare, so clone needs none.
NEW_NAMESPACES = 0x7E020000
REFUSED = {
    "the clock, the host and the machine": """
        acct adjtimex clock_adjtime clock_adjtime64 clock_settime clock_settime64 ioperm iopl lookup_dcookie
        modify_ldt nfsservctl quotactl quotactl_fd reboot setdomainname sethostname settimeofday swapoff
        swapon syslog sysfs _sysctl uselib ustat vhangup""",
    "modules, programs in the kernel, another kernel": """
        bpf create_module delete_module finit_module get_kernel_syms init_module kexec_file_load kexec_load
        query_module""",
    "other processes": """
        kcmp move_pages pidfd_getfd process_madvise process_mrelease process_vm_readv process_vm_writev
        ptrace""",
    "namespaces and mounts that no engine is confined by": """
        chroot fsconfig fsmount fsopen fspick listmount mount_setattr move_mount open_tree open_tree_attr
        setns statmount""",
    "parts of the kernel with a history of faults": """
        add_key fanotify_init io_uring_enter io_uring_register io_uring_setup keyctl name_to_handle_at
        open_by_handle_at perf_event_open request_key userfaultfd""",
    "security modules of the machine": "lsm_get_self_attr lsm_list_modules lsm_set_self_attr",
}


def names() -> list[str]:
    """The system calls of x86-64 and arm64, as the headers of this machine list them."""
    text = "".join(Path(table).read_text() for table in TABLES)
    found = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+\(?(?:\d|__)", text, re.MULTILINE)
    return sorted(set(found) - {"syscalls", "arch_specific_syscall"})


def profile() -> dict[str, object]:
    refused = {name for group in REFUSED.values() for name in group.split()}
    allowed = [
        name for name in names() if name not in {*refused, *CONFINING, "clone", "clone3", "personality", "socket"}
    ]
    action = "SCMP_ACT_ALLOW"
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 38,  # ENOSYS for calls newer than this list: programs then use older ones
        "archMap": [
            # An engine tests at its start that calls of foreign architectures fail: without these it would be killed.
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]},
        ],
        "syscalls": [
            {"names": allowed, "action": action},
            {"names": sorted(refused), "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
            {"names": CONFINING, "action": action, "comment": "with them the node confines its engines"},
            {
                "names": ["clone"],
                "action": action,
                "args": [{"index": 0, "value": NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}],
                "comment": "processes and threads, without new namespaces",
            },
            {
                "names": ["clone3"],
                "action": "SCMP_ACT_ERRNO",
                "errnoRet": 38,
                "comment": "no filter can read its flags; libraries then use clone",
            },
            {
                "names": ["personality"],
                "action": action,
                "args": [{"index": 0, "value": 0xFFFFFFFF, "op": "SCMP_CMP_EQ"}],
                "comment": "ask, not change",
            },
            {
                "names": ["socket"],
                "action": action,
                "args": [{"index": 0, "value": 16, "op": "SCMP_CMP_LE"}],
                "comment": "unix, IPv4, IPv6 and netlink; packets, vsock, alg and the like are refused",
            },
        ],
    }


if __name__ == "__main__":
    PROFILE.write_text(json.dumps(profile(), indent=1) + "\n")
