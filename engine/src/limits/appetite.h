// The recent CPU use of one tenant's workers, counted in entries long enough for the watchdog to see.
//
// A leaky bucket: CPU time fills it, and it drains at a twentieth of a core. While its level is above what one long
// call may leave, the tenant's workers run on low-priority threads (threads/scheduler.h). Such threads use CPU time
// that others leave idle and do not delay workers that need little. It is counted per tenant, so that a tenant gains
// nothing by splitting its load over many workers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/clock.h"
#include "limits/head_start.h"

namespace engine {

class Appetite final {
 public:
  // CPU time of one entry, since the watchdog found it long, that makes its thread slow. Also the level up to which a
  // tenant's workers run at normal priority.
  static constexpr uint64_t kLongNs = 4'000'000;
  // CPU time of one entry after which a slow thread loses its place: twice the default limit of a call.
  static constexpr uint64_t kVeryLongNs = 100'000'000;

  HeadStartFund& fund() { return fund_; }

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
  static constexpr uint64_t kMostNs = kLongNs + 100'000'000;  // drains in two seconds

  std::mutex mutex_;
  uint64_t level_ns_ = 0;
  uint64_t filled_ns_ = 0;
  std::atomic<uint64_t> large_until_ns_{0};
  HeadStartFund fund_;
};

}  // namespace engine
