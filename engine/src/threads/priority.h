// Kernel scheduling of threads that compute for long: low weight and long time slices.
//
// Since Linux 6.12 a thread that wakes up preempts a thread with longer slices at once. Otherwise it waits for the end
// of a slice or the next clock tick, which may take milliseconds at each step of a request. So threads that compute
// request the longest slices. (Short slices for all other threads have the same effect, but then Python and the engine
// interrupt each other and batches become small: a hello-world request cost half as much again.)
#pragma once

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace engine {

// How a scheduler thread runs: at normal priority; at low priority, once it has computed for long; and displaced by
// another low-priority thread, once it has computed for very long.
enum class Pace { kUsual, kSlow, kDisplaced };

constexpr int kSlowNice = 10;
constexpr uint64_t kSlowSliceNs = 100'000'000;

// Lowers the calling thread. Safe in a signal handler. Thread id 0 is the caller; the sandbox allows no other.
inline void LowerPriority() {
  struct {  // sched_attr, which glibc does not declare
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes = {};
  attributes.size = sizeof(attributes);
  attributes.nice = kSlowNice;
  attributes.runtime = kSlowSliceNs;
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) setpriority(PRIO_PROCESS, 0, kSlowNice);
}

}  // namespace engine
