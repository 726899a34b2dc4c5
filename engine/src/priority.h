// How threads that compute for long are scheduled: with low weight, in longer slices than others, and they offer their
// core every other millisecond.
//
// From Linux 6.12 on a thread that wakes up takes the core at once from one that has longer slices than itself, instead
// of waiting for a part of its slice or the next tick of the clock, which may be milliseconds at each step of a
// request. (Short slices for all others would do the same, but make Python and the engine interrupt each other, and
// batches small: hello-world then cost half as much again.)
//
// That is not so for a thread that has just had its share, however little it was: whoever else there is goes first, and
// keeps the core until the next tick. So a thread that computes yields it whenever the watchdog asks how it does. If
// nobody waits that is nothing; if somebody does, it gives up the rest of its slice, and what follows from that is why
// its slices are not very long.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace engine {

// How a thread of the scheduler runs: as usual; slowly, once it has computed for long; and hardly at all if others want
// the core, once it has computed for very long.
enum class Pace : int { kUsual = 0, kSlow = 10, kSlowest = 19 };  // its nice value

constexpr uint64_t kSlowSliceNs = 5'000'000;

// Of the calling thread; may be called in a signal handler. 0: this thread, the only one the sandbox lets it name.
inline void LowerPriority(Pace pace) {
  struct {  // sched_attr, which glibc does not declare
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes = {};
  attributes.size = sizeof(attributes);
  attributes.nice = static_cast<int>(pace);
  attributes.runtime = kSlowSliceNs;
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) setpriority(PRIO_PROCESS, 0, attributes.nice);
}

// Of the calling thread, in a signal handler.
inline void OfferCore() { sched_yield(); }

}  // namespace engine
