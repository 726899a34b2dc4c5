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

// What a worker sees as the time, in milliseconds since the epoch. To a tenth of one, as the standard wants it of
// clocks of pages that share a process with others (https://w3c.github.io/hr-time/#dfn-coarsen-time): finer ones
// measure neighbours by how long waiting takes.
inline double EpochMs() { return static_cast<double>(Nanoseconds(CLOCK_REALTIME) / 100'000) / 10.0; }

// The same to a microsecond, for workers whose operator trusts them with a clock (switch allow_live_clock).
inline double FineEpochMs() { return static_cast<double>(Nanoseconds(CLOCK_REALTIME) / 1'000) / 1'000.0; }

}  // namespace engine
