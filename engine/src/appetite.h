// How much the workers of one tenant have computed lately, in stretches long enough for the watchdog to see.
//
// A bucket that leaks: what they compute fills it, and it drains at a twentieth of a core. While more is in it than one
// long call may leave, the tenant's workers run on threads of low priority (scheduler.h): they get all that others
// leave idle, and make nobody wait who has little to do. It is the tenant's and not the worker's, so that many workers
// of one tenant get no further than one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "clock.h"

namespace engine {

class Appetite final {
 public:
  // CPU time in one go, from when the watchdog found it to take long, that makes a thread slow; and what may be in the
  // bucket of a tenant that counts as quick.
  static constexpr uint64_t kLongNs = 4'000'000;
  // The same that costs it its place: twice what a call has by default.
  static constexpr uint64_t kVeryLongNs = 100'000'000;

  // From any thread.
  bool is_large() const {
    uint64_t until = large_until_ns_.load(std::memory_order_relaxed);
    return until != 0 && MonotonicNs() < until;
  }

  void Add(uint64_t cost_ns) {
    if (cost_ns == 0) return;
    std::lock_guard<std::mutex> lock(mutex_);
    uint64_t now = MonotonicNs();
    level_ns_ -= std::min(level_ns_, (now - filled_ns_) / kDrain);
    level_ns_ = std::min(level_ns_ + cost_ns, kMostNs);
    filled_ns_ = now;
    large_until_ns_.store(level_ns_ > kLongNs ? now + (level_ns_ - kLongNs) * kDrain : 0, std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kDrain = 20;
  static constexpr uint64_t kMostNs = kLongNs + 100'000'000;  // forgotten after two seconds

  std::mutex mutex_;
  uint64_t level_ns_ = 0;
  uint64_t filled_ns_ = 0;
  std::atomic<uint64_t> large_until_ns_{0};
};

}  // namespace engine
