// How threads that compute for long are scheduled: with low weight, and in long slices.
//
// From Linux 6.12 on a thread that wakes up takes the core at once from one that has longer slices than itself, instead
// of waiting for a part of its slice or the next tick of the clock, which may be milliseconds at each step of a
// request. So threads that compute ask for the longest slices there are. (Short slices for all others would do the
// same, but make Python and the engine interrupt each other, and batches small: hello-world then cost half as much
// again.)
#pragma once

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace engine {

// How a thread of the scheduler runs: as usual; with low priority, once it has computed for long; and so that another
// has its place, once it has computed for very long.
enum class Pace { kUsual, kSlow, kDisplaced };

constexpr int kSlowNice = 10;
constexpr uint64_t kSlowSliceNs = 100'000'000;

// Of the calling thread; may be called in a signal handler. 0: this thread, the only one the sandbox lets it name.
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
