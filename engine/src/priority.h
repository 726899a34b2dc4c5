// How threads that compute for long are scheduled: low weight, and usual slices.
//
// All threads of the node and its engines ask for short slices (atoll/engine/slices.py), so that one which wakes up
// with little to do takes the core from one that computes, instead of waiting for the end of its slice or the next tick
// of the clock. One that computes itself must not keep them: between equal slices the kernel does not preempt.
#pragma once

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace engine {

constexpr int kSlowNice = 10;

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
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) setpriority(PRIO_PROCESS, 0, kSlowNice);
}

}  // namespace engine
