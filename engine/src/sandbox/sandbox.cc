#include "sandbox/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "sandbox/forbidden.h"

namespace engine {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kMachine = 0;  // unknown: there is no filter, and a message at the start says so
#endif

constexpr uint32_t kDescriptorsFd = 6;
constexpr uint32_t kX32Bit = 0x40000000;
constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;

// The system calls of a running engine, the most frequent first (older kernels do not cache the verdict).
// Memory may be made executable: V8 compiles JavaScript and WebAssembly to machine code.
constexpr uint32_t kAllowed[] = {
    SYS_futex,
    SYS_recvfrom,
    SYS_sendto,
    SYS_pread64,
    SYS_ppoll,
    SYS_read,
    SYS_write,
    SYS_madvise,
    SYS_mprotect,
    SYS_munmap,
    SYS_clock_gettime,
    SYS_getrandom,
    SYS_gettid,
    SYS_getpid,
    SYS_sched_yield,
    SYS_epoll_pwait,
    SYS_epoll_ctl,
    SYS_mremap,
    SYS_brk,
    SYS_pkey_mprotect,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigaction,
    SYS_sigaltstack,
    SYS_writev,
    SYS_restart_syscall,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_sched_getaffinity,
    SYS_getcpu,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_membarrier,
    SYS_sysinfo,
    SYS_getrusage,
    SYS_close,
    SYS_exit,
    SYS_exit_group,
#ifdef __x86_64__
    SYS_poll,
    SYS_epoll_wait,
    SYS_time,
#endif
};

// The C library may try these and works without them. They fail with an error and do not kill the process.
constexpr uint32_t kNoFiles[] = {
    SYS_openat,     SYS_newfstatat, SYS_statx,   SYS_fstat,    SYS_readlinkat, SYS_faccessat,
    SYS_faccessat2, SYS_getcwd,     SYS_mkdirat, SYS_unlinkat, SYS_renameat2,  SYS_fchmodat,
#ifdef __x86_64__
    SYS_open,       SYS_stat,       SYS_lstat,   SYS_access,   SYS_readlink,
#endif
};

// An engine never makes these calls. A process that does has been taken over, and is killed.
constexpr uint32_t kDeadly[] = {
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kill,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_pidfd_getfd,
    SYS_kcmp,
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_openat2,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_chroot,
    SYS_pivot_root,
    SYS_mount,
    SYS_umount2,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsmount,
    SYS_fsconfig,
    SYS_fspick,
    SYS_unshare,
    SYS_setns,
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_setgroups,
    SYS_capset,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_bpf,
    SYS_userfaultfd,
    SYS_perf_event_open,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_fanotify_init,
    SYS_personality,
#ifdef __x86_64__
    SYS_fork,
    SYS_vfork,
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_kexec_file_load,
#endif
};

constexpr uint32_t ArgumentLow(int index) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args)) + static_cast<uint32_t>(index) * 8;
}

// A seccomp program as a list of rules. Each rule begins and ends with the number of the system call in the register. A
// rule that checks an argument always ends in an action.
class Filter final {
 public:
  explicit Filter(uint32_t foreign) {
    Load(offsetof(seccomp_data, arch));
    Unless(kMachine, SECCOMP_RET_KILL_PROCESS);
    Load(offsetof(seccomp_data, nr));
#ifdef __x86_64__
    // x32 has the same architecture id but other numbers.
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 0, 1));
    Return(foreign);
#endif
  }

  void On(uint32_t call, uint32_t action) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    Return(action);
  }

  void OnEach(std::span<const uint32_t> calls, uint32_t action) {
    for (uint32_t call : calls) On(call, action);
  }

  // The lower half of an argument must be `value`. Used where the kernel itself reads only that half.
  void OnArgument(uint32_t call, int index, uint32_t value, uint32_t otherwise) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
    Load(ArgumentLow(index));
    Unless(value, otherwise);
    Return(SECCOMP_RET_ALLOW);
  }

  // The first two arguments must be 0.
  void OnZeros(uint32_t call, uint32_t otherwise) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 7));
    for (int index : {0, 1}) {
      Load(ArgumentLow(index));
      Unless(0, otherwise);
    }
    Return(SECCOMP_RET_ALLOW);
  }

  void OnArgumentBits(uint32_t call, int index, uint32_t bits, uint32_t otherwise) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
    Load(ArgumentLow(index));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0));
    Return(otherwise);
    Return(SECCOMP_RET_ALLOW);
  }

  void OnArgumentOf(uint32_t call, int index, uint32_t one, uint32_t other, uint32_t otherwise) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 5));
    Load(ArgumentLow(index));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 2, 0));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 1, 0));
    Return(otherwise);
    Return(SECCOMP_RET_ALLOW);
  }

  void Return(uint32_t action) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }

  // For every thread of the process. 0, or an errno.
  int Install() {
    sock_fprog program = {static_cast<unsigned short>(code_.size()), code_.data()};
    long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    return result < 0 ? errno : result > 0 ? ESRCH : 0;  // above 0: the thread that could not be synchronized
  }

 private:
  void Load(size_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset))); }

  void Unless(uint32_t value, uint32_t action) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
    Return(action);
  }

  std::vector<sock_filter> code_;
};

// Exactly the flags of pthread_create(). With fewer the result would be a process.
constexpr uint32_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                             CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

constexpr uint32_t kSetVma = 0x53564d41;  // PR_SET_VMA: V8 names its memory

// Refuses all calls that are not listed with an error, so that forbidden calls can be attempted before the second
// filter.
Filter AllowList(uint32_t pid) {
  Filter filter(kRefuse);
  filter.OnEach(kAllowed, SECCOMP_RET_ALLOW);
  filter.OnArgumentBits(SYS_mmap, 3, MAP_ANONYMOUS, kRefuse);  // memory, never files
  filter.OnArgument(SYS_clone, 0, kThread, kRefuse);
  filter.OnArgument(SYS_recvmsg, 0, kDescriptorsFd, kRefuse);  // files of objects, opened by Python for reading only
  filter.On(SYS_clone3,
            SECCOMP_RET_ERRNO | ENOSYS);           // a filter cannot read its flags; glibc falls back to clone
  filter.OnArgument(SYS_tgkill, 0, pid, kRefuse);  // for abort()
  filter.OnArgumentOf(SYS_prctl, 0, PR_SET_NAME, kSetVma, kRefuse);
  filter.OnArgument(SYS_sched_setattr, 0, 0, kRefuse);  // for the calling thread, which may not raise its priority
  filter.OnZeros(SYS_setpriority, kRefuse);             // for the calling thread, not for its group or user
  filter.OnArgument(SYS_prlimit64, 0, 0, kRefuse);      // for this process
  filter.On(SYS_seccomp, SECCOMP_RET_ALLOW);            // until the second filter
  filter.OnEach(kNoFiles, SECCOMP_RET_ERRNO | EACCES);
  filter.Return(kRefuse);
  return filter;
}

// Added to the first filter: the stricter verdict of the two counts.
Filter KillList(uint32_t pid) {
  Filter filter(SECCOMP_RET_KILL_PROCESS);
  filter.OnEach(kDeadly, SECCOMP_RET_KILL_PROCESS);
  filter.OnArgument(SYS_clone, 0, kThread, SECCOMP_RET_KILL_PROCESS);
  filter.OnArgument(SYS_tgkill, 0, pid, SECCOMP_RET_KILL_PROCESS);
  filter.On(SYS_seccomp, kRefuse);
  filter.Return(SECCOMP_RET_ALLOW);
  return filter;
}

bool Refused(long result) { return result == -EPERM || result == -EACCES || result == -ENOSYS; }

// Layers other than the filter refuse with different errors: no such file, no network.
bool RefusedBelow(long result) {
  return Refused(result) || result == -ENOENT || result == -EROFS || result == -ENETUNREACH;
}

// Attempts each forbidden operation that `counts`; logs and returns false if any succeeds.
template <typename Counts>
bool Prove(Counts counts, bool (*refused)(long), const char* layers) {
  bool holds = true;
  for (const Forbidden& forbidden : AllForbidden()) {
    if (!counts(forbidden)) continue;
    long result = forbidden.attempt();
    if (refused(result)) continue;
    fprintf(stderr, "engine: the sandbox leaks: \"%s\" is not refused by %s\n", forbidden.name, layers);
    holds = false;
  }
  return holds;
}

bool Install(Filter filter) {
  int error = filter.Install();
  if (error != 0) fprintf(stderr, "engine: no filter of system calls: %s\n", strerror(error));
  return error == 0;
}

bool ConfineAll() {
  if (kMachine == 0) {
    fprintf(stderr,
            "engine: no filter of system calls: none is written for this machine (x86-64 and arm64 have one)\n");
    return false;
  }
  uint32_t pid = static_cast<uint32_t>(getpid());
  bool below = Prove([](const Forbidden& act) { return act.without_filter; }, RefusedBelow, "files and network layers");
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (!Install(AllowList(pid))) return false;
  bool filtered = Prove([](const Forbidden&) { return true; }, Refused, "the filter");
  return Install(KillList(pid)) && below && filtered;
}

}  // namespace

bool Confine(std::string_view mode) {
  if (mode == "off") return true;
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // exec made it dumpable again
  bool holds = ConfineAll();
  return holds || mode != "require";
}

long TryForbidden(std::string_view name) {
  for (const Forbidden& forbidden : AllForbidden()) {
    if (name == forbidden.name) return forbidden.attempt();
  }
  return -ENOENT;
}

}  // namespace engine
