// The clocks of the engine.
#pragma once

#include <time.h>

#include <cstdint>

namespace engine {

inline uint64_t Nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// For durations and deadlines.
inline uint64_t MonotonicNs() { return Nanoseconds(CLOCK_MONOTONIC); }

// The time a worker sees, in milliseconds since the epoch. Coarsened to 0.1 ms, as the standard requires for code that
// shares a process (https://w3c.github.io/hr-time/#dfn-coarsen-time): finer clocks allow timing attacks.
inline double EpochMs() { return static_cast<double>(Nanoseconds(CLOCK_REALTIME) / 100'000) / 10.0; }

// The same in microseconds, for workers whose operator trusts them with a precise clock (switch allow_live_clock).
inline double FineEpochMs() { return static_cast<double>(Nanoseconds(CLOCK_REALTIME) / 1'000) / 1'000.0; }

}  // namespace engine
