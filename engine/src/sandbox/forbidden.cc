#include "sandbox/forbidden.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace engine {
namespace {

// Raw system calls, without the C library.
template <typename... Arguments>
long Call(long number, Arguments... arguments) {
  long result = syscall(number, arguments...);
  return result < 0 ? -errno : result;
}

long Open(const char* path, int flags) {
  long fd = Call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
  if (fd >= 0) close(static_cast<int>(fd));
  return fd;
}

long Socket(int family, int type) {
  long fd = Call(SYS_socket, family, type | SOCK_CLOEXEC, 0);
  if (fd >= 0) close(static_cast<int>(fd));
  return fd;
}

// To the loopback interface. "Connection refused" comes from the network, so the call got through.
long Connect() {
  long fd = Call(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  long result = Call(SYS_connect, fd, &address, sizeof(address));
  close(static_cast<int>(fd));
  return result;
}

long Fork(long flags) {
  long child = Call(SYS_clone, flags, nullptr, nullptr, nullptr, 0);
  if (child == 0) syscall(SYS_exit_group, 0);
  return child;
}

// Read when the addon is loaded; the filter forbids it later.
const long kParent = getppid();

const Forbidden kForbidden[] = {
    // Files
    {"open a file", [] { return Open("/etc/passwd", O_RDONLY); }, true},
    {"open its environment", [] { return Open("/proc/self/environ", O_RDONLY); }, true},
    {"open its memory", [] { return Open("/proc/self/mem", O_RDWR); }, true},
    {"list the root folder", [] { return Open("/", O_RDONLY | O_DIRECTORY); }, false},
    {"make a file", [] { return Open("/tmp", O_RDWR | O_TMPFILE); }, true},
    {"open by handle", [] { return Call(SYS_open_by_handle_at, -1, nullptr, 0); }, false},
    {"openat2", [] { return Call(SYS_openat2, AT_FDCWD, nullptr, nullptr, 0); }, false},
    {"look at a file", [] { return Call(SYS_statx, AT_FDCWD, "/", 0, 0, nullptr); }, false},
    {"make a folder", [] { return Call(SYS_mkdirat, AT_FDCWD, "", 0700); }, false},
    {"remove a file", [] { return Call(SYS_unlinkat, AT_FDCWD, "", 0); }, false},
    {"rename a file", [] { return Call(SYS_renameat2, AT_FDCWD, "", AT_FDCWD, "", 0); }, false},
    {"change a mode", [] { return Call(SYS_fchmodat, AT_FDCWD, "", 0777); }, false},
    {"map a file", [] { return Call(SYS_mmap, nullptr, 4096, PROT_READ, MAP_PRIVATE, 4, 0); }, false},
    {"make a file in memory", [] { return Call(SYS_memfd_create, nullptr, 0); }, false},
    {"chroot", [] { return Call(SYS_chroot, nullptr); }, false},
    {"mount", [] { return Call(SYS_mount, nullptr, nullptr, nullptr, 0, nullptr); }, false},
    {"unmount", [] { return Call(SYS_umount2, nullptr, 0); }, false},
    {"open a mount tree", [] { return Call(SYS_open_tree, -1, nullptr, 0); }, false},
    {"swap the root", [] { return Call(SYS_pivot_root, nullptr, nullptr); }, false},
    // Network and other channels
    {"make a TCP socket", [] { return Socket(AF_INET, SOCK_STREAM); }, false},
    {"make a Unix socket", [] { return Socket(AF_UNIX, SOCK_STREAM); }, false},
    {"make a netlink socket", [] { return Socket(AF_NETLINK, SOCK_RAW); }, false},
    {"connect to the machine", Connect, true},
    {"connect its socket", [] { return Call(SYS_connect, 3, nullptr, 0); }, false},
    {"bind its socket", [] { return Call(SYS_bind, 3, nullptr, 0); }, false},
    {"receive a descriptor on its socket", [] { return Call(SYS_recvmsg, 3, nullptr, 0); }, false},
    {"send a descriptor", [] { return Call(SYS_sendmsg, 3, nullptr, 0); }, false},
    {"shared memory", [] { return Call(SYS_shmget, 0, 0, 0); }, false},
    {"message queues", [] { return Call(SYS_mq_open, nullptr, 0, 0, nullptr); }, false},
    // Processes
    {"fork", [] { return Fork(SIGCHLD); }, false},
    {"fork into a namespace", [] { return Fork(CLONE_NEWUSER | SIGCHLD); }, false},
    {"clone3", [] { return Call(SYS_clone3, nullptr, 0); }, false},
    {"execute", [] { return Call(SYS_execve, nullptr, nullptr, nullptr); }, false},
    {"execute a descriptor", [] { return Call(SYS_execveat, -1, "", nullptr, nullptr, AT_EMPTY_PATH); }, false},
    {"signal the parent", [] { return Call(SYS_kill, kParent, 0); }, false},
    {"signal everyone", [] { return Call(SYS_kill, -1, 0); }, false},
    {"signal a thread of the parent", [] { return Call(SYS_tgkill, kParent, kParent, 0); }, false},
    {"queue a signal", [] { return Call(SYS_rt_sigqueueinfo, kParent, 0, nullptr); }, false},
    {"open a process", [] { return Call(SYS_pidfd_open, kParent, -1); }, false},
    {"signal by descriptor", [] { return Call(SYS_pidfd_send_signal, -1, 0, nullptr, 0); }, false},
    {"take a descriptor", [] { return Call(SYS_pidfd_getfd, -1, 0, 0); }, false},
    {"ptrace", [] { return Call(SYS_ptrace, -1, kParent, 0, 0); }, false},
    {"read the parent's memory", [] { return Call(SYS_process_vm_readv, kParent, 0, 0, 0, 0, 0); }, false},
    {"write the parent's memory", [] { return Call(SYS_process_vm_writev, kParent, 0, 0, 0, 0, 0); }, false},
    {"slow the parent down", [] { return Call(SYS_setpriority, PRIO_PROCESS, kParent, 0); }, false},
    {"slow its group down", [] { return Call(SYS_setpriority, PRIO_PGRP, 0, 0); }, false},
    {"change the parent's slices", [] { return Call(SYS_sched_setattr, kParent, nullptr, 0); }, false},
    {"limit the parent", [] { return Call(SYS_prlimit64, kParent, 9999, nullptr, nullptr); }, false},
    {"move the parent", [] { return Call(SYS_sched_setaffinity, kParent, 0, nullptr); }, false},
    // Rights
    {"unshare", [] { return Call(SYS_unshare, 0); }, false},
    {"enter a namespace", [] { return Call(SYS_setns, -1, 0); }, false},
    {"change user", [] { return Call(SYS_setresuid, -1, -1, -1); }, false},
    {"change group", [] { return Call(SYS_setresgid, -1, -1, -1); }, false},
    {"change groups", [] { return Call(SYS_setgroups, -1, nullptr); }, false},
    {"set capabilities", [] { return Call(SYS_capset, nullptr, nullptr); }, false},
    {"become dumpable", [] { return Call(SYS_prctl, PR_SET_DUMPABLE, 9, 0, 0, 0); }, false},
    {"outlive the parent", [] { return Call(SYS_prctl, PR_SET_PDEATHSIG, 9999, 0, 0, 0); }, false},
    // Large attack surfaces of the kernel
    {"io_uring", [] { return Call(SYS_io_uring_setup, 0, nullptr); }, false},
    {"bpf", [] { return Call(SYS_bpf, -1, nullptr, 0); }, false},
    {"userfaultfd", [] { return Call(SYS_userfaultfd, -1); }, false},
    {"perf events", [] { return Call(SYS_perf_event_open, nullptr, 0, 0, 0, 0); }, false},
    {"keys", [] { return Call(SYS_keyctl, -1, 0, 0, 0, 0); }, false},
    {"add a key", [] { return Call(SYS_add_key, nullptr, nullptr, nullptr, 0, 0); }, false},
    {"load a module", [] { return Call(SYS_finit_module, -1, nullptr, 0); }, false},
    {"load a kernel", [] { return Call(SYS_kexec_load, 0, -1, nullptr, 0); }, false},
    {"reboot", [] { return Call(SYS_reboot, 0, 0, 0, nullptr); }, false},
    {"the kernel's log", [] { return Call(SYS_syslog, -1, nullptr, 0); }, false},
    {"change execution domain", [] { return Call(SYS_personality, 0xffffffff); }, false},
    {"device control", [] { return Call(SYS_ioctl, 3, 0, nullptr); }, false},
#ifdef __x86_64__
    {"an x32 call", [] { return Call(0x40000000 | SYS_getpid); }, false},
    {"ports", [] { return Call(SYS_iopl, 9); }, false},
#endif
};

}  // namespace

std::span<const Forbidden> AllForbidden() { return kForbidden; }

}  // namespace engine
